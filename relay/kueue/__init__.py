"""The admission check by which Kueue lets workloads start once their slices stand: quota, slices, then pods."""
