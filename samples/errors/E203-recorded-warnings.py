import warnings

with warnings.catch_warnings(record=True) as found:
    warnings.warn("a")
print(len(found))
