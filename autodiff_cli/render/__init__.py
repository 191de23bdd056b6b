"""Reports, graphs, explanations and diagnostics as text, JSON, pictures and pages."""
