#include "describe/serving/scheduler.h"

#include <algorithm>
#include <iterator>
#include <tuple>

#include "ground/base/error.h"

namespace systole {

ServingScheduler::ServingScheduler(const ServingLimits& limits) : limits_(limits) {
  CHECK(limits.slots >= 1 && limits.cache >= 1 && limits.prefill >= 1, "{} slots of {} tokens, {} of prompts",
        limits.slots, limits.cache, limits.prefill);
  slots_.resize(static_cast<std::size_t>(limits.slots));
  if (limits.hold > Seconds() && !limits.whole_prompts) choice_.emplace(limits.lengths, limits.rows);
  beside_ = limits.prefill_beside > 0 ? std::min(limits.prefill, limits.prefill_beside) : limits.prefill;
  if (limits.pages == 0) return;
  CHECK(limits.page >= 1 && limits.pages >= pages_for(limits.cache), "{} pages of {} for a sequence of {}",
        limits.pages, limits.page, limits.cache);
  pool_.emplace(limits.pages);
}

double ServingScheduler::pages_used() const {
  return pool_ ? 1 - static_cast<double>(pool_->available()) / static_cast<double>(pool_->size()) : 0;
}

ServingScheduler::Key& ServingScheduler::activate(const std::string& name) {
  std::int64_t level = 0;
  if (!keys_.empty()) {
    level = std::ranges::min_element(keys_, {}, [](const auto& entry) { return entry.second.served; })->second.served;
  }
  return keys_.try_emplace(name, Key{0, level}).first->second;
}

void ServingScheduler::release(const std::string& name) {
  const auto key = keys_.find(name);
  if (--key->second.requests == 0) keys_.erase(key);
}

Admission ServingScheduler::add(ServingRequest request) {
  if (request.prompt > limits_.cache) return Admission::too_long;
  // A request that finds a free slot does not wait, so that `waiting` may be 0.
  if (waiting() >= limits_.waiting + limits_.slots - running_) return Admission::queue_full;
  ++activate(request.key).requests;
  waiting_.push_back({std::move(request), false});
  return Admission::accepted;
}

bool ServingScheduler::remove(std::uint64_t id) {
  for (Slot& slot : slots_) {
    if (!slot.taken || slot.request.id != id) continue;
    release(slot.request.key);
    if (pool_) pool_->release(slot.pages);
    if (unfinished_ && &slots_[*unfinished_] == &slot) unfinished_.reset();
    slot = {};
    --running_;
    return true;
  }
  const auto found = std::ranges::find(waiting_, id, &ServingRequest::id);
  if (found == waiting_.end()) return false;
  release(found->key);
  waiting_.erase(found);
  return true;
}

std::int64_t ServingScheduler::begun() const {
  return running_ + std::ranges::count_if(waiting_, [](const Request& request) { return request.begun; });
}

void ServingScheduler::forget_pages() {
  CHECK(begun() == 0, "{} requests have begun", begun());
  if (pool_) pool_->forget();
}

std::list<ServingScheduler::Request>::iterator ServingScheduler::choose() {
  const auto order = [&](const Request& request) {
    return std::tuple(-request.priority, keys_.at(request.key).served);
  };
  auto best = waiting_.end();
  for (auto request = waiting_.begin(); request != waiting_.end(); ++request) {
    if (holds_ && !request->begun) continue;
    if (best == waiting_.end() || order(*request) < order(*best)) best = request;
  }
  return best;
}

ServingStep::Piece ServingScheduler::cut(std::size_t slot, const PieceChoice::Piece& most) {
  Slot& into = slots_[slot];
  const std::int64_t begin = into.computed, rest = into.request.prompt - begin;
  const std::int64_t wanted = into.request.piece > 0 ? std::min(rest, into.request.piece) : rest;
  const std::int64_t count = limits_.whole_prompts ? rest : std::min(wanted, most.tokens);
  into.computed += count;
  const bool last = into.prefilled();
  keys_.at(into.request.key).served += count + (last ? 1 : 0);
  unfinished_ = last ? std::nullopt : std::optional(slot);
  if (pool_) publish(into);
  return {into.request.id, static_cast<std::int64_t>(slot), begin, into.computed, begin == into.cached, last, most.run};
}

// Pages whose tokens are computed when this step is. Steps are computed in order, so a later piece may use them.
void ServingScheduler::publish(Slot& slot) {
  const auto whole = static_cast<std::size_t>(slot.computed / limits_.page);
  for (; slot.published < std::min(whole, slot.request.hashes.size()); ++slot.published)
    pool_->publish(slot.pages[slot.published], slot.request.hashes[slot.published]);
}

// False: there are no pages for its prompt and one token. The prompt's last token is computed in any case.
bool ServingScheduler::admit(std::list<Request>::iterator chosen, std::size_t slot, ServingStep& step) {
  Slot fresh{.taken = true, .since = admissions_, .request = {}};
  if (pool_) {
    const auto known = static_cast<std::size_t>((chosen->prompt - 1) / limits_.page);
    fresh.pages = pool_->match(std::span(chosen->hashes).first(std::min(known, chosen->hashes.size())));
    fresh.published = fresh.pages.size();
    const std::int64_t needed = std::min(pages_for(chosen->prompt + 1), pages_for(limits_.cache));
    if (!pool_->append(needed - static_cast<std::int64_t>(fresh.pages.size()), fresh.pages)) {
      pool_->release(fresh.pages);
      return false;
    }
    fresh.computed = fresh.cached = static_cast<std::int64_t>(fresh.published) * limits_.page;
    step.tables.push_back({static_cast<std::int64_t>(slot), fresh.pages});
  }
  fresh.request = std::move(*chosen);
  fresh.request.begun = true;
  waiting_.erase(chosen);
  slots_[slot] = std::move(fresh);
  ++admissions_;
  ++running_;
  return true;
}

// The slot that gives way: of the lowest priority, the one that began last.
std::size_t ServingScheduler::latest() const {
  std::optional<std::size_t> found;
  const auto order = [](const Slot& slot) { return std::tuple(-slot.request.priority, slot.since); };
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].taken && (!found || order(slots_[s]) > order(slots_[*found]))) found = s;
  }
  return *found;
}

void ServingScheduler::preempt(std::size_t slot) {
  Slot& from = slots_[slot];
  pool_->release(from.pages);
  if (unfinished_ == slot) unfinished_.reset();
  // Its answer so far becomes part of what is to be computed; the token that was drawn last has not been.
  if (from.prefilled()) from.request.prompt = from.computed + 1;
  waiting_.push_front(std::move(from.request));
  from = {};
  --running_;
  ++preemptions_;
}

// A page for the next token of a slot. False: the slot itself had to give way.
bool ServingScheduler::make_room(std::size_t slot, ServingStep& step) {
  if (!pool_ || pages_for(slots_[slot].computed + 1) <= static_cast<std::int64_t>(slots_[slot].pages.size()))
    return true;
  while (!pool_->append(1, slots_[slot].pages)) {
    const std::size_t victim = latest();
    preempt(victim);
    if (victim == slot) return false;
  }
  step.tables.push_back({static_cast<std::int64_t>(slot), slots_[slot].pages});
  return true;
}

Seconds ServingScheduler::left_beside(const ServingStep& step) const {
  const std::int64_t drafted = limits_.drafts > 0 ? limits_.drafts + 1 : 1;
  return limits_.hold - choice_->decode_time(std::max<std::int64_t>(std::ssize(step.decode), drafted));
}

ServingStep ServingScheduler::next() {
  ServingStep step;
  std::vector<std::size_t> oldest;
  for (std::size_t s = 0; s < slots_.size(); ++s) {
    if (slots_[s].prefilled()) oldest.push_back(s);
  }
  std::ranges::sort(oldest, {},
                    [&](std::size_t s) { return std::tuple(-slots_[s].request.priority, slots_[s].since); });
  for (const std::size_t s : oldest) {
    if (!slots_[s].taken || !make_room(s, step)) continue;
    step.decode.push_back({slots_[s].request.id, static_cast<std::int64_t>(s)});
    ++slots_[s].computed;
    ++keys_.at(slots_[s].request.key).served;
  }
  std::ranges::sort(step.decode, {}, &ServingStep::Sequence::slot);
  std::int64_t room = limits_.prefill;
  if (limits_.prefill_beside > 0 && !step.decode.empty() && !limits_.whole_prompts)
    room = std::min(room, limits_.prefill_beside);
  // The time that is left for prompts; nothing: nobody waits for it.
  std::optional<Seconds> left;
  if (choice_ && !step.decode.empty()) left = left_beside(step);
  const auto most = [&]() -> PieceChoice::Piece {
    if (!left) return {room, 0};
    const PieceChoice::Piece fits = choice_->within(*left);
    if (fits.tokens > 0) return {std::min(fits.tokens, room), fits.run};
    if (!step.prefill.empty()) return {};
    const PieceChoice::Piece least = choice_->least();
    return {std::min(least.tokens, room), least.run};
  };
  if (!step.decode.empty()) beside_ = most().tokens;
  const auto add = [&](std::size_t slot) {
    step.prefill.push_back(cut(slot, most()));
    const ServingStep::Piece& piece = step.prefill.back();
    const std::int64_t count = piece.end - piece.begin;
    room -= count;
    if (left) *left -= choice_->time_of({count, piece.run});
    if (choice_ && !left && piece.last) left = left_beside(step);  // it has its first token, and waits for the next
  };
  if (unfinished_) add(*unfinished_);
  // A prompt that is not finished is the next to go on: none begins after it, also where a shorter piece would fit.
  for (std::size_t s = 0; s < slots_.size() && !waiting_.empty() && !unfinished_; ++s) {
    if (slots_[s].taken) continue;
    if (most().tokens <= 0) break;
    const auto chosen = choose();
    if (chosen == waiting_.end()) break;
    if (limits_.whole_prompts && !step.prefill.empty() && chosen->prompt > room) break;
    if (!admit(chosen, s, step)) break;
    add(s);
  }
  if (!step.decode.empty()) {
    const std::int64_t rest = limits_.drafts + 1 - std::ssize(step.decode);
    step.room = std::max<std::int64_t>(std::min(rest, room), 0);
  }
  return step;
}

void ServingScheduler::draft(ServingStep& step, std::size_t index, std::int64_t wanted) {
  ServingStep::Sequence& placed = step.decode.at(index);
  Slot& slot = slots_[static_cast<std::size_t>(placed.slot)];
  std::int64_t count = std::min({wanted, step.room, limits_.cache - slot.computed});
  if (pool_) {
    const std::int64_t missing =
        std::min(pages_for(slot.computed + count) - std::ssize(slot.pages), pool_->available());
    if (missing > 0 && pool_->append(missing, slot.pages)) step.tables.push_back({placed.slot, slot.pages});
    count = std::min(count, std::ssize(slot.pages) * limits_.page - slot.computed);
  }
  if (count <= 0) return;
  placed.drafts = count;
  slot.computed += count;
  step.room -= count;
}

void ServingScheduler::ran(std::int64_t tokens, Seconds took) {
  if (choice_) choice_->ran(tokens, took);
}

void ServingScheduler::decoded(std::int64_t rows, Seconds took) {
  if (choice_) choice_->decoded(rows, took);
}

void ServingScheduler::keep(const ServingStep::Sequence& drafted, std::int64_t right) {
  Slot& slot = slots_[static_cast<std::size_t>(drafted.slot)];
  CHECK(slot.taken && slot.request.id == drafted.id && right >= 0 && right <= drafted.drafts, "{} of {} drafts of {}",
        right, drafted.drafts, drafted.id);
  slot.computed -= drafted.drafts - right;
  keys_.at(slot.request.key).served += right;
  if (!pool_) return;
  const auto needed = static_cast<std::size_t>(pages_for(slot.computed));
  pool_->release(std::span(slot.pages).subspan(needed));
  slot.pages.resize(needed);
}

}  // namespace systole
