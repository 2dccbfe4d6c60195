"""rigid"""
