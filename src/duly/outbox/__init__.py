"""What leaves: messages to systems whose transactions are not ours, and what became of each.

A run's transaction commits a message beside its effect; a relay hands it to a *destination*. What a destination says of it is
believed, so it has to be exact: *delivered*, *surely not sent*, *refused for good*, or *nobody knows*.
"""
