import torch
import tensorflow as tf

x = torch.ones(2)
y = tf.square(x)
