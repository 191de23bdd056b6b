import numpy as np

print(np.ones(2).ctypes)
