"""Names below `torch.` that are no ops: custom functions, hooks, transforms, stubs."""
