"""The main job: the bottleneck experiment, letters to sounds, and a report on both."""
