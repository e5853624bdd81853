"""Conformance: does every implementation transfer every octet, over every protocol, before anything is timed?"""
