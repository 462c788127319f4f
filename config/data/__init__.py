"""Facts that do not depend on settings (hardware, versions, names): data files and their readers."""
