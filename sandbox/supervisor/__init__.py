"""The program that runs inside a box, as its first process.

The folder stands alone: in a box there is no `sandbox` package, only this directory, loaded under
the name `potbox` (see `__main__`), so its modules import one another relatively. The host uses
`wire` from here as well.

    supervise   the main loop: frames from the host, kernels, cells
    zygote      forks kernels that need not import anything
    kernel      what a forked kernel runs: ipykernel with our hooks
    wire        frames, shared with the host
"""
