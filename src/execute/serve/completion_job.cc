#include "execute/serve/completion_job.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "execute/serve/answer_choice.h"
#include "execute/serve/request_times.h"

namespace systole {
namespace {

std::string event(const Node& node) { return fmt::format("data: {}\n\n", to_json(node)); }

// One request for completions on its way. But for the constructor, begin() and drop(), everything runs on the engine's
// thread.
class CompletionJob : public std::enable_shared_from_this<CompletionJob> {
 public:
  CompletionJob(const ServedApi& api, ServingThread& serving, CompletionRequest request, CompletionHead head,
                CompletionForm form, HttpResponder responder)
      : api_(api),
        serving_(serving),
        request_(std::move(request)),
        head_(std::move(head)),
        form_(std::move(form)),
        responder_(std::move(responder)) {}

  // Errors: those of ServingThread::check_prompt; invalid (more answers than may wait and run at once). Then nothing
  // was answered.
  Status begin(const std::string& key) {
    const std::int64_t answers = static_cast<std::int64_t>(request_.prompts.size()) * request_.n;
    if (answers > serving_.most())
      return key_error(ErrorKind::invalid, "n", "{} prompts with {} answers each; this server takes {} at once",
                       request_.prompts.size(), request_.n, serving_.most());
    std::vector<std::vector<std::int32_t>> prompts;
    for (const CompletionRequest::Prompt& prompt : request_.prompts) {
      prompts.push_back(tokens_of(api_, prompt));
      TRY(serving_.check_prompt(prompts.back()));
      usage_.prompt_tokens += static_cast<std::int64_t>(prompts.back().size());
      for (std::int64_t i = 0; i < request_.n; ++i)
        choices_.push_back({AnswerChoice(api_, request_, form_, choices_.size(), prompt, prompts.back())});
    }
    open_ = choices_.size();
    note_request();
    SequenceRequest sequence = common_sequence(api_, request_, form_, key);
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      sequence.prompt = prompts[i / static_cast<std::size_t>(request_.n)];
      sequence.draw = i;
      const auto job = shared_from_this();
      const std::uint64_t id = serving_.submit(
          sequence, {[job, i](std::int32_t token) { return job->take(i, token); },
                     [job, i](SequenceEnd end) { job->end(i, end); }, [job](const Error& error) { job->refuse(error); },
                     [job, i](const TokenLogprobs& logprobs) { job->note(i, logprobs); },
                     [job, i] { return job->is_whole(i); }, [job, i](SequencePart part) { job->enter(i, part); }});
      if (!keep(id)) break;
    }
    responder_.when_gone([weak = weak_from_this()] {
      if (const auto job = weak.lock()) job->drop();
    });
    return {};
  }

 private:
  struct Choice {
    AnswerChoice answer;
    bool has_role = false;  // a chat's stream has said whose answer it is
    SequencePart part = SequencePart::queue;
  };

  // False: nobody wants the sequence any more.
  bool keep(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    ids_.push_back(id);
    if (dropped_) serving_.cancel(id);
    return !dropped_;
  }

  // Cancels all sequences, so that none that waits is begun for nobody.
  void drop() {
    const std::lock_guard lock(mutex_);
    if (std::exchange(dropped_, true)) return;
    for (const std::uint64_t id : ids_) serving_.cancel(id);
  }

  void note_request() {
    HttpRecord& record = responder_.record();
    record.note("model", head_.model);
    record.note("prompt_tokens", usage_.prompt_tokens);
    if (request_.stream) record.note("stream", true);
    if (api_.logs_prompts) {
      for (const CompletionRequest::Prompt& prompt : request_.prompts) record.note("prompt", text_of(prompt));
    }
    record.enter(name_of(SequencePart::queue));
  }

  std::string text_of(const CompletionRequest::Prompt& prompt) const {
    if (const auto* text = std::get_if<std::string>(&prompt)) return *text;
    Result<std::string> text = api_.tokenizer.decode(std::get<std::vector<std::int32_t>>(prompt));
    return text.ok() ? *std::move(text) : std::string();
  }

  // A request is where the furthest of its sequences is: the engine computes one thing at a time, so that no two of them
  // are in different parts but for `wait` and `queue`.
  void enter(std::size_t index, SequencePart part) {
    if (over_) return;
    choices_[index].part = part;
    for (const Choice& choice : choices_) part = std::max(part, choice.part);
    if (part == SequencePart::prefill && !std::exchange(computed_, true)) responder_.record().mark(kBegins);
    responder_.record().enter(name_of(part));
  }

  void note(std::size_t index, const TokenLogprobs& logprobs) { choices_[index].answer.note(logprobs); }

  bool take(std::size_t index, std::int32_t token) {
    if (over_) return false;
    AnswerChoice& answer = choices_[index].answer;
    if (++usage_.completion_tokens == 1) responder_.record().mark(kFirstToken);
    responder_.record().count(kAnswerTokens);
    answer.take(token);
    if (request_.stream && answer.has_text() && !answer.has_ended()) send(index);
    return !over_ && !answer.has_ended() && !responder_.is_gone();
  }

  bool is_whole(std::size_t index) const { return !over_ && choices_[index].answer.has_ended(); }

  void end(std::size_t index, SequenceEnd why) {
    if (over_) return;
    choices_[index].answer.end(why);
    if (request_.stream) send(index);
    if (--open_ > 0) return enter(index, SequencePart::queue);  // the request is where the others are
    if (!over_) finish();
  }

  void refuse(const Error& error) {
    if (over_) return;
    over_ = true;
    drop();
    if (!begun_) return responder_.send(refusal(error));
    if (write(event(error_node(error)))) responder_.end();
  }

  void send(std::size_t index) {
    if (request_.conversation && !std::exchange(choices_[index].has_role, true))
      send_choice(chat_piece(static_cast<std::int64_t>(index), {}, {}));
    send_choice(choices_[index].answer.part());
  }
  void send_choice(Node choice) {
    Node node = answer_node(request_, head_, {std::move(choice)});
    if (request_.with_usage) node.set("usage", Node());
    write(event(node));
  }

  // False: the client is gone, or too slow. Then the stream is cut, so that nobody takes it for whole.
  bool write(const std::string& piece) {
    if (!begun_) {
      begun_ = true;
      responder_.begin({.type = "text/event-stream; charset=utf-8", .headers = {{"Cache-Control", "no-cache"}}});
    }
    if (responder_.write(piece) == StreamWrite::taken) return true;
    over_ = true;
    drop();
    return false;
  }

  void finish() {
    over_ = true;
    responder_.record().mark(kLastToken);
    if (request_.stream) {
      if (request_.with_usage) {
        Node node = answer_node(request_, head_, {});
        if (!write(event(node.set("usage", to_node(usage_))))) return;
      }
      if (write("data: [DONE]\n\n")) responder_.end();
      return;
    }
    std::vector<Node> choices;
    for (Choice& choice : choices_) choices.push_back(choice.answer.part());
    Node node = answer_node(request_, head_, std::move(choices));
    responder_.send({.body = to_json(node.set("usage", to_node(usage_)))});
  }

  const ServedApi& api_;
  ServingThread& serving_;
  const CompletionRequest request_;
  const CompletionHead head_;
  const CompletionForm form_;
  HttpResponder responder_;
  std::vector<Choice> choices_;
  Usage usage_;
  std::size_t open_ = 0;  // choices that have not ended
  bool begun_ = false, over_ = false;
  bool computed_ = false;  // a sequence of it has begun

  std::mutex mutex_;
  std::vector<std::uint64_t> ids_;  // guarded by mutex_, as the next
  bool dropped_ = false;
};

}  // namespace

Status answer_completion(const ServedApi& api, ServingThread& serving, CompletionRequest request, CompletionHead head,
                         CompletionForm form, const std::string& key, HttpResponder responder) {
  return std::make_shared<CompletionJob>(api, serving, std::move(request), std::move(head), std::move(form),
                                         std::move(responder))
      ->begin(key);
}

}  // namespace systole
