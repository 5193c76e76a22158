"""Reservations, their blocks and sub-blocks, and future reservations: who uses how much, and when they come and go.

values      what the state keeps of them
supply      how many hosts a reservation has, who uses them, how many are left
messages    as Google's messages
reading     gets and lists
times       how a future reservation makes its reservation, and deletes it at its end
buttons     how people make them
"""
