"""The serve target: an inference server made to do decode steps and M-row passes, each paired with its log line."""
