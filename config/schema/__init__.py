"""The types of the settings, and the values that derive from them."""
