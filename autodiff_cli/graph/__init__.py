"""Expression graphs: nodes, ops and how they are declared, dtype and shape rules, strides."""
