#pragma once
// One thread that owns an engine and serves requests from any thread by a ServingLoop, and vectors of texts between its
// steps.
//
// Thread safety: all of it. Receivers are called on the engine's thread; they must return soon, because every sequence
// waits for them, and must not call the ServingThread except cancel().
//
// The weights can be changed under way (`reload`): sequences and vectors that have begun end with the old, what comes
// meanwhile waits for the new. No answer has tokens of both, and there is one copy of the weights at every moment.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <variant>
#include <vector>

#include "execute/serve/serving_loop.h"
#include "execute/serve/text_vectors.h"

namespace systole {

struct ServingReceiver {
  std::function<bool(std::int32_t token)> token;    // false: no more
  std::function<void(SequenceEnd)> end;             // once, last
  std::function<void(const Error& error)> refused;  // instead of `end`: as ServingLoop::add; internal: it failed
  std::function<void(const TokenLogprobs&)> logprobs = {};  // as SequenceReceiver
  std::function<bool()> is_whole = {};  // once `token` wanted no more: counts as ended, not as cancelled; absent: never
  std::function<void(SequencePart)> part = {};  // as SequenceReceiver
};

// Sums since the start, and what is there now.
struct ServingCounts {
  std::int64_t waiting = 0, running = 0;
  std::int64_t prompt_tokens = 0, answer_tokens = 0;
  std::int64_t ended = 0, cancelled = 0, refused = 0;
  std::int64_t cached_tokens = 0;         // of prompts, whose keys and values were there
  std::int64_t preemptions = 0;           // sequences that gave way and were computed again
  std::int64_t draft_tokens = 0;          // guesses of tokens of answers
  std::int64_t accepted_tokens = 0;       // of them, those that were right
  double pages_used = 0;                  // share of the cache
  std::int64_t prefill_beside = 0;        // tokens of prompts that a step beside answers could have
  std::int64_t texts = 0;                 // whose vectors were computed
  bool draining = false, failed = false;  // refuses all requests
  std::optional<std::int64_t> step = {};  // of the checkpoint that is served; nothing: a published model
  std::int64_t reloads = 0;               // of other checkpoints
  std::int64_t failed_reloads = 0;        // checkpoints that were not taken, since they could not be read
};

// Another checkpoint to serve.
struct WeightsReload {
  std::int64_t step = 0;
  // Called on the engine's thread, when no sequence has begun: fills the engine's parameters. Gives the step that they
  // are of afterwards, which is another than the wanted one if that could not be loaded. Error: they are of none, and
  // serving fails.
  std::function<Result<std::int64_t>(Engine& engine, std::int64_t served)> load;
};

class ServingThread {
 public:
  // `step`: of the checkpoint in the engine, if it is of a run. `options`: but for `waiting`; what they point at must
  // outlive the thread.
  ServingThread(std::unique_ptr<Engine> engine, std::int64_t waiting, std::optional<std::int64_t> step = {},
                ServingLoopOptions options = {});
  ~ServingThread();  // ends after the step that runs; requests are dropped without a call
  ServingThread(const ServingThread&) = delete;
  ServingThread& operator=(const ServingThread&) = delete;

  // The most requests that can wait and run at once.
  std::int64_t most() const { return most_; }
  // Errors: those of Engine::check_prompt, with which submit would refuse this prompt.
  Status check_prompt(std::span<const std::int32_t> prompt) const { return engine_->check_prompt(prompt); }
  // `request.id` is set here and returned. The receiver may be called before this returns.
  std::uint64_t submit(SequenceRequest request, ServingReceiver receiver);
  // `done` is called on the engine's thread, or here. Errors that it gets: those of Engine::check_prompt; busy (more
  // texts than may wait); interrupted; internal (serving failed). REQUIRES: the engine has hidden states.
  void embed(TextsRequest request);
  // Drops a request, or nothing if it has ended; its receiver is not called again once the step that runs is over.
  void cancel(std::uint64_t id);
  // Serves another checkpoint, once what has begun has ended; instead of one that was wanted before and still waits for
  // that. REQUIRES: the thread was given a step.
  void reload(WeightsReload reload);
  // Counts a checkpoint for which reload() was not called, since it cannot be read.
  void note_failed_reload();
  // Refuses requests from now on (kind interrupted); those before go on.
  void drain();
  ServingCounts counts() const;
  std::optional<Error> failure() const;  // why it refuses all requests: the device, or weights that are not finite

 private:
  struct Add {
    SequenceRequest request;
    ServingReceiver receiver;
    bool is_surplus = false;  // without its prompt: it is refused
  };
  struct Drain {};
  // The second: of a request to drop.
  using Command = std::variant<Add, std::uint64_t, TextsRequest, WeightsReload, Drain>;
  void run();
  Result<bool> step();
  void obey(Command command);
  std::optional<Error> closed() const;
  void add(Add add);
  void add(TextsRequest request);
  void begin(WeightsReload reload);
  bool may_change_weights() const { return reload_ && loop_.begun() == 0 && vectors_.waiting() == 0; }
  Status change_weights();
  void fail_all(const Error& error);

  std::unique_ptr<Engine> engine_;
  ServingLoop loop_;
  TextVectors vectors_;
  const std::int64_t most_;
  std::map<std::uint64_t, std::function<void(const Error&)>> refusals_;  // of the requests in loop_
  std::optional<WeightsReload> reload_;                                  // while it is there, no request begins
  std::vector<TextsRequest> held_;                                       // that came since
  bool is_drained_ = false;                                              // what comes now came after drain()

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> commands_;  // guarded by mutex_, as what follows
  std::int64_t adds_ = 0;          // of commands_
  std::int64_t texts_ = 0;         // of embed() that have no answer
  std::uint64_t last_id_ = 0;
  bool ends_ = false;
  ServingCounts counts_;
  std::optional<Error> failure_;
  std::thread thread_;  // last: it uses the others
};

}  // namespace systole
