"""How a design is proposed (search), built and scored (evaluation), and the loop that joins them."""
