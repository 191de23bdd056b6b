"""The command: options, files, processes, exit codes; answers to editors, notebooks and pytest."""
