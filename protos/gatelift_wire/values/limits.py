"""Every bound of the wire, each with its reason. Pure numbers; read by codec, outbox, session and the adapters."""

from __future__ import annotations

KIBIBYTE = 1024
MEBIBYTE = 1024 * KIBIBYTE

# --- frames and messages -------------------------------------------------------------------------------------------

FRAME_BYTES_TARGET = MEBIBYTE
"""Batches are cut so that a frame stays below this: large enough to cost nothing, small enough not to block a lease."""

MESSAGE_BYTES_MAX = 3 * MEBIBYTE
"""One message that cannot be cut. The API server takes objects up to 1.5 MiB, so every legal object travels."""

FRAME_BYTES_MAX = 4 * MEBIBYTE
"""What an end accepts at most (gRPC's own default limit): one message of the largest size, and room for controls."""

FRAME_MESSAGES_MAX = 256
"""Messages in one frame: beyond a hundred or so batching gains nothing, and a frame is handled in one turn."""

FRAME_CONTROLS_MAX = 16
"""Controls in one frame; the session machine never sends more than four."""

# --- fields --------------------------------------------------------------------------------------------------------

NAME_MAX = 253
"""Names of Kubernetes objects (DNS subdomain)."""

UID_MAX = 64
"""UIDs and instance ids: a UUID has 36 characters."""

LABEL_MAX = 63
"""Value of a label, name of a namespace or kind."""

WORD_MAX = 316
"""Names that may carry a prefix: resource names, gates, flavors, kinds (253 + "/" + 63, rounded down to the label)."""

TEXT_MAX = 32 * KIBIBYTE
"""Texts for people: the API server's limit of a condition's message."""

LAST_WORDS_MAX = 2 * KIBIBYTE
"""What a container that failed said last: half of what a kubelet keeps, and the end of it says what went wrong."""

STATUS_BYTES_MAX = 3 * MEBIBYTE // 2
"""A status or a spec as JSON: an object of 1.5 MiB is the most the API server takes."""

JSON_PARTS_MAX = 65_536
"""Objects and lists in JSON inside a message: an object of the largest size has a third of that. To look through so
many takes 5 ms, whatever their shape."""

STATUS_VALUES_MAX = 32_768
"""Values in one status: a pod of three hundred containers has a third of that, and so many names are gone through, and
not decoded, in 3 ms of one call."""

STATUS_DIGITS_MAX = 40
"""Of a number in a long status: Kubernetes counts in 64 bits, and to read thousands of digits takes their square."""

STATUS_LOOKED_AT_BYTES = 16 * KIBIBYTE
"""A status up to this has too few bytes for either to cost anything."""

FRAME_PARTS_MAX = 65_536
"""Items of all lists in one frame, one within the other: the largest honest one, inventories of four chunks, has half.
A part may take two bytes on the wire and takes 8 us to decode, so bytes alone do not bound what a frame costs."""

FRAME_FIELDS_MAX = 1024
"""Fields of a frame itself: its messages and controls, and four numbers of each of the frames that it was joined of."""

NESTING_MAX = 64
"""Depth of JSON inside a message: Kubernetes objects have about fifteen. Whoever reads it later may recurse."""

SEAL_BYTES_MAX = 64
"""Proof of the leader's counter, which agents bring back: 40 bytes today."""

CERTIFICATE_BYTES_MAX = 256 * KIBIBYTE
"""A chain, a bundle or a signing request."""

OBJECTS_MAX = 8192
"""Objects of one placement, or object states in one report."""

POD_SETS_MAX = 64
"""Pod sets of a workload; Kueue's own limit is 8, a pod group may have as many roles as it likes within reason."""

TROUBLES_MAX = 4
"""Troubles of pods in one report: one for each thing that keeps a pod from running, and today the first alone."""

TROUBLE_TEXT_MAX = 4 * KIBIBYTE
"""One sentence: the agent cuts it at 400 characters, the longest of which take four bytes."""

KEYS_MAX = 8192
"""Keys in one Confirm; the sender cuts longer lists."""

PAIRS_MAX = 128
"""Resources, flavors or counts in one list of pairs."""

CAPACITY_ENTRIES_MAX = 1024
"""Flavors times resources of one worker: about as many as its status has room for."""

NAMESPACES_MAX = 10_000
"""Namespaces of one worker that accept work."""

KINDS_MAX = 256
"""Kinds an agent serves."""

GATES_MAX = 64
"""Scheduling gates of one pod."""

COUNT_MAX = 2**31 - 1
"""Counts of pods and credits: Kubernetes counts in int32."""

NUMBER_MAX = 2**63 - 1
"""Sessions, terms, sequence numbers, epochs, amounts: they fit a signed 64-bit number on both ends."""

SECONDS_MAX = 10.0 * 365 * 86400
"""Durations and echoed clocks; anything longer is a mistake or an attack."""

# --- inventory -----------------------------------------------------------------------------------------------------

INVENTORY_ENTRIES_MAX = 100_000
"""Placements of one worker: ten times the load of the benchmarks; about 20 MB while it is put together."""

INVENTORY_CHUNK_ENTRIES = 4096
"""Entries of one chunk at most; the byte target cuts earlier."""

FOREIGN_MAX = 256
"""Runs of other management clusters that are named; more are counted. Nothing of the kind is usual."""

# --- outbox --------------------------------------------------------------------------------------------------------

OUTBOX_MESSAGES_MAX = 32_768
"""Messages kept until acknowledged. More means the peer is away for long: forget them and resync by inventory."""

OUTBOX_BYTES_MAX = 64 * MEBIBYTE
"""The same in bytes: the resume window must not be what fills the memory of a manager with many agents."""

WINDOW_MESSAGES_MAX = 1024
"""Sent and not yet acknowledged: bounds what adapters queue, and leaves the rest where newer can replace older."""

WINDOW_BYTES_MAX = 8 * MEBIBYTE
"""The same in bytes."""

ACK_EVERY = 256
"""Received messages after which an acknowledgement goes out at once: a quarter of the peer's window."""

ACK_DELAY_SECONDS = 0.25
"""An acknowledgement waits this long for a frame to ride on: nearly always one comes, and until then it only keeps the
peer's outbox a little fuller, which `ACK_EVERY` bounds.
"""

# --- writing -------------------------------------------------------------------------------------------------------

HOLD_SECONDS = 0.02
"""A frame that nobody waits for (`packing.HOLD`) is held this long for others to travel with it: not more than a
write to a busy API server takes, and long enough for most to find company where ten pods a second start.
"""

TIDY_SECONDS = 0.1
"""The same for what only tidies up after all is over, for what another message will say as well, and for
acknowledgements: the time that a write to a busy API server takes.
"""

WRITE_GAP_SECONDS = 0.01
"""Least time from one write on a stream to the next: what comes meanwhile travels with it. A stream that was silent so
long writes at once.
"""

WRITES_AT_ONCE = 16
"""Writes in a row on a stream that keep neither of these: the steps that follow from each other where little goes on.
What only tidies up is held all the same.
"""

WRITE_EVERY_SECONDS = 0.05
"""Each of them comes back after this: where more is written than twenty times a second, all keep their pauses."""

JOINED_MESSAGES_MAX = 64
"""Messages of frames that were joined: the receiver handles a frame in one turn, which must stay short."""

JOINED_FRAMES_MAX = 2 * JOINED_MESSAGES_MAX
"""Frames that were joined, acknowledgements included."""

# --- session -------------------------------------------------------------------------------------------------------

DIAL_SECONDS = 20.0
"""An agent's dial that is neither open nor refused after this is given up: TCP and TLS through slow proxies."""

HELLO_SECONDS = 10.0
"""A stream that has not greeted after this is closed."""

WELCOME_SECONDS = 30.0
"""The manager's core has this long to write the session number (R2): three attempts of a write of 10 s."""

WELCOME_WAIT_SECONDS = HELLO_SECONDS + WELCOME_SECONDS
"""The agent waits for the answer to its Hello a little longer than the manager may take."""

CATCH_UP_SECONDS = 120.0
"""A resume or resync that is not over after this ends the session: a quorum list of a large worker takes seconds."""

DRAIN_SECONDS = 5.0
"""After Close is sent, the peer has this long to acknowledge and hang up."""

STREAMS_WAITING_MAX = 4
"""Streams of one cluster that have not greeted yet; one more closes the oldest."""

RENEWALS_OUTSTANDING_MAX = 32
"""Renewals an agent remembers to match the grants that answer them."""

# --- redial --------------------------------------------------------------------------------------------------------

REDIAL_FIRST_SECONDS = 1.0
"""First step of the backoff, spread by jitter so that a thousand agents do not return at once."""

REDIAL_MAX_SECONDS = 30.0
"""Last step of the backoff."""

NOT_LEADER_SECONDS = 5.0
"""A standby answered: the leader's address will be right within this, so the agent asks again without backing off."""

HOPELESS_REDIAL_SECONDS = 60.0
"""After an answer that only a person changes (revoked, unknown cluster, version)."""

FENCED_REDIAL_SECONDS = 30.0
"""Another process with this identity serves the cluster: do not take the session back at once."""

# --- lease ---------------------------------------------------------------------------------------------------------

RENEW_SECONDS = 10.0
"""An agent renews this often."""

SUSPECT_SECONDS = 15.0
"""No renewal for this long: one was missed. The manager makes no new offers."""

LOST_SECONDS = 60.0
"""No renewal for this long: the cluster is lost and its session is over."""

WRITE_SECONDS = 10.0
"""An agent's write is answered, or given up, within this (R1); the same as the Kubernetes layer's own limit."""

LANDED_SECONDS = 30.0
"""No write lands later than this after it was asked for, given up or not (R1, decision 28): its own limit, as long
again until an API server that got it at the last moment drops it, and ten seconds for that server's etcd."""

LEASE_SECONDS = 29.0
"""The right to start that one renewal buys. LOST must come later than it and the landing of the last write begun under
it. It is what `leases.longest_right` leaves of `LOST_SECONDS`."""

GRACE_SECONDS = 30.0
"""`terminationGracePeriodSeconds` of a pod that does not say, and of one that an agent does not know."""

GRACE_SECONDS_MAX = 30.0 * 2**20
"""A year: what is longer counts as that at both ends."""

KUBELET_MARGIN_SECONDS = 60.0
"""A kubelet notices a removed pod within seconds; kills that hang take up to the runtime's own limits."""

CLOCK_DRIFT = 0.01
"""How much faster one end's clock may run: a hundred times what quartz does, so that a poor virtual clock fits."""

LEASE_SECONDS_MAX = 7 * 86400.0
"""The longest extension a person may ask for (`gatelift lease extend`)."""
