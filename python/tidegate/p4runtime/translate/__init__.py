"""Operations as P4Runtime messages, and messages as operations. Nothing here has a connection, a lock or a thread.

| module | entities |
|---|---|
| `entries`, `tables` | `TableEntry`, `DirectCounterEntry`, `DirectMeterEntry`: for a server, for a client |
| `profiles` | `ActionProfileMember`, `ActionProfileGroup` |
| `arrays` | `CounterEntry`, `MeterEntry`, `RegisterEntry` |
| `value_sets` | `ValueSetEntry` |
| `replication` | `MulticastGroupEntry`, `CloneSessionEntry` |
| `digests` | the data of `DigestList` |
| `packets` | `PacketIn`, `PacketOut` |
| `matches`, `meters`, `fields` | parts of these |
| `arms` | for each operation its messages, or why there are none |

A server makes operations of updates (`write...`) and entities of answers (`read...`). A client makes updates of operations and
answers of entities; these methods have the operation's name.
"""
