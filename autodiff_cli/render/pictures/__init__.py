"""Pictures: graphs as SVG, PNG and HTML, arrays as blocks."""
