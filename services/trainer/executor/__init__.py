"""Carries out macros such as MOVE_TO with one button a step, guided by RAM alone. Pure: states in, actions out."""
