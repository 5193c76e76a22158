"""`slices adopt`: takes over what TPU Provisioner and TPU operator made, and tells what a person does about them."""
