WHERE: dict[str, tuple[str, ...]] = {k: ("arithmetic","shape","reduction") for k in "add mul sub div neg pow_tensor expand sum_to_size reshape permute detach sum".split()}
WHERE.update({k: ("memory",) for k in "alias with_value copy_slices".split()})
