"""A page on 127.0.0.1 over a folder of runs: all of them, one while it happens, one afterwards, two beside each other.

It reads what the other commands read, by the functions that they read it with, and says it in their words. It measures
nothing: what it starts is the command itself, in a process of its own.
"""
