"""Facts that do not depend on settings (hardware, versions, names), and their readers."""
