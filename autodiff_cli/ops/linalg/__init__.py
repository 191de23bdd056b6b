"""Products, systems and decompositions of matrices."""
