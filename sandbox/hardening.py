"""What a container of the docker wall may do: every limit of a box, in the engine's words.

Tried one by one against hostile programs; `tests/walls` holds them. Two that are easily lost: tmpfs
pages are charged to the memory limit, and `--cpus` does not change `sched_getaffinity`.
"""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

from docker import APIClient
from docker.types import LogConfig, Mount, Ulimit

from sandbox.identity import FIRST_UID, UIDS, owner_labels, this_process
from sandbox.launch import ENVIRONMENT, PYTHON_FLAGS, SUPERVISOR_MOUNT
from sandbox.spec import BoxSpec, Limits

MIB = 1 << 20
SECCOMP = Path(__file__).parent / "seccomp.json"


def container_config(
    api: APIClient, spec: BoxSpec, info: dict[str, Any], mounts: dict[str, Path]
) -> dict[str, Any]:
    """The body of the create request; `mounts` are read-only, box path → host path."""
    uid = box_uid(info)
    return api.create_container_config(
        image=spec.image,
        command=["python3", *PYTHON_FLAGS, SUPERVISOR_MOUNT],
        entrypoint=[],
        user=f"{uid}:{uid}",
        hostname="box",
        working_dir="/work",
        environment=dict(ENVIRONMENT),
        stdin_open=True,
        labels=owner_labels(this_process(), spec.run_id),
        host_config=_host_config(api, spec, info, mounts, uid),
    )


def box_uid(info: dict[str, Any]) -> int:
    """A user of its own for a box: the kernel counts some things by user over all containers
    (descriptors in flight, pending signals), and one box must not use up another's share.

    Where the engine maps users, only 65536 exist in a container.
    """
    options = ",".join(str(option) for option in info.get("SecurityOptions") or ())
    mapped = "rootless" in options or "userns" in options
    first, count = (20_000, 40_000) if mapped else (FIRST_UID, UIDS)
    return first + secrets.randbelow(count)


def _host_config(
    api: APIClient, spec: BoxSpec, info: dict[str, Any], mounts: dict[str, Path], uid: int
) -> dict[str, Any]:
    limits = spec.limits
    return api.create_host_config(
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true", f"seccomp={SECCOMP.read_text()}"],
        mem_limit=limits.memory_mb * MIB,
        memswap_limit=limits.memory_mb * MIB,
        nano_cpus=int(limits.cpus * 1e9) if info.get("CpuCfsQuota") else None,
        pids_limit=limits.pids,
        tmpfs=_tmpfs(limits, uid),
        shm_size=limits.shm_mb * MIB,
        ulimits=_ulimits(limits),
        ipc_mode="private",
        log_config=LogConfig(type="none"),
        auto_remove=True,
        runtime=spec.runtime,
        mounts=[
            Mount(target, str(source), type="bind", read_only=True)
            for target, source in mounts.items()
        ],
    )


def _tmpfs(limits: Limits, uid: int) -> dict[str, str]:
    return {
        "/work": f"rw,exec,nosuid,nodev,size={limits.work_mb}m,mode=0755,uid={uid},gid={uid}",
        "/tmp": f"rw,noexec,nosuid,nodev,size={limits.tmp_mb}m,mode=1777",
    }


def _ulimits(limits: Limits) -> list[Ulimit]:
    # Above every tmpfs, so that a full disk says ENOSPC and not SIGXFSZ.
    file_bytes = (max(limits.work_mb, limits.tmp_mb, limits.shm_mb) + 64) * MIB
    return [
        Ulimit(name="fsize", soft=file_bytes, hard=file_bytes),
        Ulimit(name="nofile", soft=4096, hard=4096),
        Ulimit(name="core", soft=0, hard=0),
    ]
