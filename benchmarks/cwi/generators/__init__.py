"""One module a task: its `TASK`. Built alike: constants by tier, prompt, `draw`, `shortcuts`."""
