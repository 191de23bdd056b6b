import numpy as np

x = 1
for _ in range(70):
    x = [x]
print(np.sum(x))
