"""What convinces somebody who does not trust this server: one Merkle tree over all heads, signed and witnessed."""
