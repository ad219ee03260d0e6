// Who called what? When two ranks find that they disagree, but not in what, one shows the other its
// record of calls, and the other finds the first difference and tells all.
//
// That is needed when the first disagreement passed unnoticed, since no data flowed between the two
// (Header::history), and when the error is to say where in the program each rank made its call,
// which no header carries. Costs nothing until then but 32 bytes per call, kept for the last 64.
#include <algorithm>
#include <cstring>

#include "engine/core.hpp"

namespace minitorch {
namespace {

bool same_number(const Header& a, const Header& b) {
  return a.group == b.group && a.issue == b.issue && a.phase == b.phase;
}

std::string called_at(int rank, const std::string& origin) {
  return origin.empty() ? "" : " Rank " + std::to_string(rank) + " called it at " + origin + ".";
}

}  // namespace

// --- the record ----------------------------------------------------------------------------------

const Record::Call* Record::find(const Header& like) const {
  for (std::size_t i = 0; i < size(); ++i)
    if (same_number(calls_[i].header, like)) return &calls_[i];
  return nullptr;
}

// [header | length of the origin | origin] ..., the latest first, as many as a control message
// holds.
std::string Record::pack() const {
  std::string text;
  for (std::size_t i = 1; i <= size(); ++i) {
    const Call& call = calls_[(count_ - i) % kLength];
    const auto length = static_cast<std::uint32_t>(call.origin.size());
    if (text.size() + sizeof call.header + sizeof length + length > kMaxControlText) break;
    text.append(reinterpret_cast<const char*>(&call.header), sizeof call.header);
    text.append(reinterpret_cast<const char*>(&length), sizeof length);
    text.append(call.origin);
  }
  return text;
}

std::vector<Record::Call> Record::unpack(const std::string& text) {
  std::vector<Call> calls;
  std::size_t at = 0;
  std::uint32_t length;
  while (at + sizeof(Header) + sizeof length <= text.size()) {
    Call& call = calls.emplace_back();
    std::memcpy(&call.header, text.data() + at, sizeof call.header);
    at += sizeof call.header;
    std::memcpy(&length, text.data() + at, sizeof length);
    at += sizeof length;
    call.origin = text.substr(at, length);
    at += length;
  }
  return calls;
}

// --- disputes ------------------------------------------------------------------------------------

GroupStatePtr Core::group_of(std::uint32_t id) {
  const std::lock_guard lock(inbox_mutex_);
  const auto known = groups_.find(id);
  return known == groups_.end() ? nullptr : known->second.lock();
}

// Shows the other rank our record and leaves the verdict to it; `look_around` gives it a second.
void Core::dispute(Work& work, const HeaderMismatch& error) {
  work.disputed_ns_ = now_ns();
  work.dispute_ = error.what() + called_at(transport_->rank(), work.origin_);
  ControlMessage message;
  message.kind = ControlMessage::Kind::kDispute;
  {
    const std::lock_guard lock(inbox_mutex_);
    message.text = work.group_->record.pack();
  }
  transport_->send_control(error.peer, message);
}

void Core::handle_dispute(const ControlMessage& message) {
  std::vector<Record::Call> theirs = Record::unpack(message.text);
  const GroupStatePtr group = theirs.empty() ? nullptr : group_of(theirs.front().header.group);
  if (!group) return;
  std::reverse(theirs.begin(), theirs.end());  // the earliest first
  for (const Record::Call& call : theirs)
    if (disagree(*group, message.from, call)) return;
  const std::string text =
      "Detected mismatch between collectives on ranks. Rank " + std::to_string(message.from) +
      " and Rank " + std::to_string(transport_->rank()) +
      " have run different collectives of group " + std::to_string(group->id) + " before " +
      describe(theirs.front().header) +
      ", which is as far as their records agree. Every rank must issue the same collectives in the "
      "same order.";
  fail_world(Error::kMismatch, text);
}

// Whether our call of the same number is another one; if so, it is over for all.
bool Core::disagree(GroupState& group, int world_rank, const Record::Call& theirs) {
  Record::Call ours;
  {
    const std::lock_guard lock(inbox_mutex_);
    const Record::Call* const found = group.record.find(theirs.header);
    if (found == nullptr || same_call(found->header, theirs.header)) return false;
    ours = *found;
  }
  const int rank = transport_->rank();
  std::string text = mismatch(rank, ours.header, world_rank, theirs.header);
  const std::string at[] = {called_at(rank, ours.origin), called_at(world_rank, theirs.origin)};
  text += rank < world_rank ? at[0] + at[1] : at[1] + at[0];  // both ends word it alike
  fail_world(Error::kMismatch, text);
  return true;
}

}  // namespace minitorch
