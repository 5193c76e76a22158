"""Gangs: claims of one workload whose pods are held by a scheduling gate until the slices of all of them stand."""
