#include "operate/run/speculation.h"

#include <algorithm>
#include <string_view>

#include "ground/base/counted.h"
#include "ground/base/number_from.h"

namespace systole {
namespace {

constexpr std::int64_t kUsualDrafts = 7, kMostDrafts = 31;  // 7: with the last token, eight rows
constexpr std::string_view kModel = "model:";

// Nothing: it is none of the forms.
std::optional<Speculation> parse_speculation(const std::string& asked) {
  const bool by_model = asked.starts_with(kModel);
  std::string_view source = asked;
  if (by_model) source.remove_prefix(kModel.size());
  const std::size_t colon = std::min(source.rfind(':'), source.size());
  std::optional<std::int64_t> drafts = kUsualDrafts;
  if (colon < source.size()) {
    drafts = number_from<std::int64_t>(source.substr(colon + 1));
    if (drafts || !by_model) source = source.substr(0, colon);
    if (by_model) drafts = drafts.value_or(kUsualDrafts);  // the path has a colon
  }
  if (!drafts || *drafts < 1 || *drafts > kMostDrafts) return std::nullopt;
  if (by_model ? source.empty() : source != "ngram") return std::nullopt;
  return Speculation{*drafts, by_model ? std::string(source) : ""};
}

}  // namespace

Result<Speculation> speculation_for(const std::string& asked, const std::string& backend) {
  if (asked.empty()) return Speculation{};
  const std::optional<Speculation> speculation = parse_speculation(asked);
  if (!speculation) {
    return error(ErrorKind::invalid,
                 "--speculate: '{}' is neither ngram nor ngram:K with K from 1 to {}, nor model:PATH or model:PATH:K",
                 asked, kMostDrafts)
        .hinted(fmt::format("--speculate ngram:{}", kUsualDrafts));
  }
  if (backend == "cpu" || backend == "reference") return *speculation;
  return error(ErrorKind::unsupported,
               "--speculate: on {} the bits of an answer depend on how many tokens are computed together", backend)
      .hinted("leave it out, or compute with --backend cpu");
}

Status check_same_tokens(const ServedModel& draft, const ServedModel& served) {
  const auto refusal = [&](const std::string& difference) {
    return error(ErrorKind::invalid, "--speculate: '{}' cannot draft for '{}': {}", draft.name, served.name, difference)
        .hinted("draft with a smaller model that has the same tokenizer, or without a model: --speculate ngram");
  };
  const Tokenizer &ours = draft.tokenizer, &theirs = served.tokenizer;
  if (ours.hash() == theirs.hash()) return {};
  if (ours.vocabulary() != theirs.vocabulary()) {
    return refusal(fmt::format("it has {}, the other {}", counted(ours.vocabulary(), "token"), theirs.vocabulary()));
  }
  for (std::int32_t token = 0; token < ours.vocabulary(); ++token) {
    if (ours.bytes_of(token) != theirs.bytes_of(token))
      return refusal(fmt::format("token {} spells another text in each", token));
  }
  return {};
}

Result<std::optional<ServedModel>> find_draft_model(const Speculation& speculation, const ServedModel& served) {
  if (speculation.model.empty()) return std::optional<ServedModel>();
  Result<ServedModel> draft = find_model(speculation.model);
  if (!draft.ok()) {
    Error error = std::move(draft).error();
    error.message = "--speculate: " + error.message;
    return error;
  }
  TRY(check_same_tokens(*draft, served));
  return std::optional(std::move(draft).value());
}

Result<std::unique_ptr<ModelDrafts>> open_drafts(const std::optional<ServedModel>& draft, const Machine& machine,
                                                 const Engine& target, DType parameter) {
  if (!draft) return std::unique_ptr<ModelDrafts>();
  EngineOptions options = draft_engine_options(target);
  options.parameter = parameter;
  std::unique_ptr<Engine> engine = TRY(open_engine(*draft, machine, options));
  return std::make_unique<ModelDrafts>(std::move(engine), target.vocabulary());
}

}  // namespace systole
