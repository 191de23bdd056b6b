import warnings

with warnings.catch_warnings(record=True) as found:
    warnings.warn("a", stacklevel=2)
print(len(found))
