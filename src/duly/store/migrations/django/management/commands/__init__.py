"""One command, `duly`: Django looks for an app's commands beside the app."""
