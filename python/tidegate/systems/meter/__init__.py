"""Meters: the fair one, the TCP-friendly one of Wang, Hu and Lin (2020), and their peers."""
