// Ranks as threads of one process: notebooks, tests, sanitizers.
//
// Messages are passed, no accumulator is shared. Each rank has a mailbox. A short message is copied
// into it; of a long one only the address is left there, and whoever comes second - the sender who
// finds a receive posted, or the receiver who finds a message waiting - copies it straight across,
// once.
#pragma once

#include <memory>
#include <vector>

#include "transport/transport.hpp"

namespace minitorch {

// A world of `size` ranks; element r is rank r's transport. Every one keeps the mailboxes of all
// alive.
std::vector<std::shared_ptr<Transport>> threads_world(int size, Tag max_tag = (1 << 29) - 1);

}  // namespace minitorch
