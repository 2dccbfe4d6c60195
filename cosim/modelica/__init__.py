"""modelica"""
