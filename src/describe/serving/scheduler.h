#pragma once
// The scheduler of a serving engine: continuous batching (Yu et al., Orca, OSDI 2022) as a pure state machine. Requests
// come in, the batch of each engine step comes out; it knows no clock, no device and no text, so that a planner can play
// it as well as an engine run it.
//
//   ServingScheduler scheduler({.slots = 8, .cache = 2048, .waiting = 64});
//   if (scheduler.add({.id = 1, .prompt = 300, .answer = 100}) != Admission::accepted) ...   // refuse the request
//   ServingStep step = scheduler.next();   // prefill these pieces, then decode one token of those sequences
//   scheduler.remove(1);                   // it ended, or its client is gone: the slot is free
//
// A long prompt is computed over several steps, in pieces (chunked prefill: Agrawal et al., Sarathi-Serve, OSDI 2024), so
// that it holds up the other sequences for no longer than a piece takes: of a fixed number of tokens, or of as many as
// fit in a time (`hold`, piece_choice.h), for which whoever computes says how long pieces and decodes took. Prompts are
// finished in the order in which they began.
//
// With a pool of pages a request begins when there are pages for its prompt, less those that a beginning computed before
// has left (page_pool.h). A sequence gets another page when it has filled its last. If there is none, the sequence that
// began last, of the lowest priority, gives its pages back, waits again as the first of its key, and is computed anew
// from its prompt and the tokens that it has.
//
// Several tokens of a sequence can be computed in one decode if those after the first are guessed (speculative decoding:
// Leviathan et al., ICML 2023). Whoever guesses adds such drafts to a step by `draft`, and says by `keep` how many were
// right. Drafts take no page from another sequence, and a step of many sequences has none.
//
// To change the model's weights, `hold` keeps requests that have not begun from beginning; once the others have ended,
// `begun` is 0.
//
// Which request gets a free slot: the one of highest priority; among those, of the key that has been served least (the
// virtual token counter of Sheng et al., OSDI 2024); among those, the one that came first. A key that was idle does not
// save up: it begins level with the least served active key.

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "describe/serving/page_pool.h"
#include "describe/serving/piece_choice.h"
#include "ground/base/units.h"

namespace systole {

struct ServingLimits {
  std::int64_t slots = 1;    // sequences in a step
  std::int64_t cache = 1;    // tokens of one sequence, prompt and answer
  std::int64_t waiting = 0;  // requests that wait for a slot; one more is refused
  // Tokens of prompts per step; a running sequence waits for no more than these between two tokens.
  std::int64_t prefill = 512;
  // The same of a step in which a running sequence gets a token, and not of whole prompts; 0: no fewer.
  std::int64_t prefill_beside = 0;
  // A prompt is one piece, however long: of an encoder. Then a step has one prompt, or several that `prefill` allows.
  bool whole_prompts = false;
  std::int64_t pages = 0;  // of the pool; 0: each slot has memory of its own
  std::int64_t page = 16;  // tokens of a page
  // A step has at most so many drafts, and one less for each further sequence that decodes: its rows are at most these
  // and one. They count as tokens of `prefill`.
  std::int64_t drafts = 0;
  // A step in which a running sequence gets a token takes no longer than this, as far as prompts can help it; 0: no
  // limit. Not of whole prompts.
  Seconds hold = {};
  std::vector<std::int64_t> lengths = {}, rows = {};  // for `hold`: of prefills and of decodes (PieceChoice)
};

struct ServingRequest {
  std::uint64_t id = 0;       // unique among those not removed
  std::string key = {};       // whose request it is; fairness is between keys
  std::int64_t prompt = 1;    // tokens, at least 1
  std::int64_t answer = 1;    // tokens, at most
  std::int64_t priority = 0;  // higher goes first
  // Of the whole pages of the prompt, in order; empty: nothing is shared. See page_pool.h.
  std::vector<PageHash> hashes = {};
  std::int64_t piece = 0;  // tokens of its prompt in a step, at most; 0: as many as there is room for
};

enum class Admission {
  accepted,
  queue_full,  // as many wait as may; try again later
  too_long,    // the prompt does not fit the cache, now or later
};

struct ServingStep {
  struct Sequence {
    std::uint64_t id;
    std::int64_t slot;
    std::int64_t drafts = 0;  // of the tokens after the one that it decodes
    bool operator==(const Sequence&) const = default;
  };
  struct Piece {
    std::uint64_t id;
    std::int64_t slot;
    std::int64_t begin, end;  // tokens of the prompt, and after a preemption of the answer so far
    bool first;               // those before `begin` have been computed by others
    bool last;                // it ends here; the sequence also gets a token
    std::int64_t run = 0;     // it is computed so many tokens at a time; 0: all at once
    bool operator==(const Piece&) const = default;
  };
  struct Table {
    std::int64_t slot;
    std::vector<std::int32_t> pages;
    bool operator==(const Table&) const = default;
  };
  std::vector<Table> tables;     // that changed, to be known before anything is computed
  std::vector<Piece> prefill;    // of one sequence at most one
  std::vector<Sequence> decode;  // sequences that had a token before this step, by slot
  std::int64_t room = 0;         // drafts that `decode` may still get
  bool empty() const { return prefill.empty() && decode.empty(); }
};

class ServingScheduler {
 public:
  // REQUIRES: slots, cache and prefill at least 1; a pool has pages for one sequence of `cache` tokens; `hold` has
  // lengths.
  explicit ServingScheduler(const ServingLimits& limits);

  // A request that is accepted waits, or runs in the next step. REQUIRES: a new id.
  Admission add(ServingRequest request);
  // Forgets a request wherever it is; false: it is unknown. Its slot may be given away in the next step.
  bool remove(std::uint64_t id);
  // The batch of the next step; empty if nothing waits or runs.
  ServingStep next();
  // Adds drafts to step.decode[index], at most `wanted`: as many as the step and the sequence's cache have room for, and
  // as there is memory for. REQUIRES: the last step that `next` gave, before it is computed.
  void draft(ServingStep& step, std::size_t index, std::int64_t wanted);
  // The first `right` drafts have become tokens of the sequence, the others are forgotten. REQUIRES: after each step, of
  // each sequence with drafts that has not been removed.
  void keep(const ServingStep::Sequence& drafted, std::int64_t right);
  // So many tokens of a prompt that were computed at once, or a decode of so many rows, took so long.
  void ran(std::int64_t tokens, Seconds took);
  void decoded(std::int64_t rows, Seconds took);
  // Tokens of prompts that the last step beside running sequences could have.
  std::int64_t beside() const { return beside_; }

  // While it holds, no request gets a slot that never had one: it waits. Those that have begun go on to their end, also
  // after a preemption.
  void hold(bool holds) { holds_ = holds; }
  // Requests that have begun and not been removed: those that run, and those that were preempted.
  std::int64_t begun() const;
  // What pages have of the prompts so far is void. REQUIRES: begun() is 0.
  void forget_pages();

  std::int64_t waiting() const { return static_cast<std::int64_t>(waiting_.size()); }
  std::int64_t running() const { return running_; }
  // Times that a sequence gave its pages back.
  std::int64_t preemptions() const { return preemptions_; }
  // The share of the pool's pages that sequences use; 0 without a pool.
  double pages_used() const;

 private:
  struct Key {
    std::int64_t requests = 0;  // that wait or run
    std::int64_t served = 0;    // tokens, counted from the level at which it became active
  };
  struct Request : ServingRequest {
    bool begun = false;  // it has had a slot
  };
  Key& activate(const std::string& name);
  void release(const std::string& name);
  std::list<Request>::iterator choose();  // end: none may begin
  // The next piece of the prompt in a slot, of at most so many tokens.
  ServingStep::Piece cut(std::size_t slot, const PieceChoice::Piece& most);
  // Of `hold`, what a decode of the step leaves.
  Seconds left_beside(const ServingStep& step) const;

  ServingLimits limits_;
  std::optional<PieceChoice> choice_;  // with `hold`
  std::int64_t beside_ = 0;
  std::list<Request> waiting_;  // in the order they came
  bool holds_ = false;
  struct Slot {
    bool taken = false;
    std::int64_t computed = 0;  // tokens in the cache
    std::int64_t cached = 0;    // of them, computed by others
    std::int64_t since = 0;     // number of its admission
    Request request;
    std::vector<std::int32_t> pages = {};
    std::size_t published = 0;  // pages
    bool prefilled() const { return taken && computed >= request.prompt; }
  };
  bool admit(std::list<Request>::iterator chosen, std::size_t slot, ServingStep& step);
  bool make_room(std::size_t slot, ServingStep& step);
  std::size_t latest() const;
  void preempt(std::size_t slot);
  void publish(Slot& slot);
  std::int64_t pages_for(std::int64_t tokens) const { return (tokens + limits_.page - 1) / limits_.page; }

  std::optional<PagePool> pool_;
  std::int64_t admissions_ = 0, preemptions_ = 0;
  std::vector<Slot> slots_;
  std::optional<std::size_t> unfinished_;  // the slot whose prompt has been begun and not finished
  std::int64_t running_ = 0;
  std::map<std::string, Key> keys_;  // of requests that wait or run
};

}  // namespace systole
