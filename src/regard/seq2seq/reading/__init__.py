"""Reading files of pairs: lines, then rows or objects, then the columns that were asked for.

Every layer yields what it read, and a :class:`~regard.seq2seq.reading.fault.Fault` for what it
could not read, in the order of the file, and reads on. Whether the first fault ends the
reading is the caller's affair.
"""
