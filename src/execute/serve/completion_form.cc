#include "execute/serve/completion_form.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace systole {

Status check_model(const ServedApi& api, const std::string& asked) {
  if (asked == api.model || adapter_of(api, asked) > 0) return {};
  std::string hint = fmt::format("'{}' is", api.model);
  if (!api.adapters.empty()) hint += fmt::format(", with the adapters '{}'", fmt::join(api.adapters, "', '"));
  return key_error(ErrorKind::not_found, "model", "no model '{}' is served here", asked)
      .coded(ErrorCode::model_not_found)
      .hinted(std::move(hint));
}

std::int64_t adapter_of(const ServedApi& api, const std::string& model) {
  const auto found = std::ranges::find(api.adapters, model);
  return found == api.adapters.end() ? 0 : found - api.adapters.begin() + 1;
}

std::vector<std::int32_t> tokens_of(const ServedApi& api, const CompletionRequest::Prompt& prompt) {
  const auto* text = std::get_if<std::string>(&prompt);
  return text != nullptr ? api.tokens_of(*text) : std::get<std::vector<std::int32_t>>(prompt);
}

Status add_chat_prompt(const ServedApi& api, std::int64_t unix_seconds, CompletionRequest& request) {
  if (!api.chat)
    return error(ErrorKind::unsupported, "the model '{}' has no chat template", api.model)
        .hinted("serve it with --chat-template, or ask /v1/completions");
  const std::time_t seconds = unix_seconds;
  std::tm now{};
  localtime_r(&seconds, &now);
  request.prompts.emplace_back(TRY(api.chat->tokens_of(*request.conversation, now)));
  return {};
}

CompletionForms::CompletionForms(const ServedApi& api) : api_(api) {
  if (api.chat) tools_ = tool_format_of(api.chat->chat_template().source());
  marks_ = marks_of(tools_, api.tokenizer);
}

Result<CompletionForm> CompletionForms::form_of(const CompletionRequest& asked) {
  CompletionForm form;
  const bool has_form = asked.form.kind != AnswerForm::Kind::text;
  if (!grammars_ && (has_form || asked.tools.is_forced())) grammars_.emplace(api_.tokenizer, marks_);
  if (has_form) {
    form.grammar = TRY(grammars_->masks_of(asked.form));
    return form;
  }
  if (asked.tools.choice == ToolUse::Choice::none) return form;
  form.tools = tools_;
  form.spelled = marks_;
  if (!asked.tools.is_forced()) return form;
  const std::string key =
      fmt::format("tools {} {} {}", asked.tools.parallel, to_json(Node(asked.tools.name)), to_json(asked.tools.tools));
  form.grammar = TRY(grammars_->masks(key, [&] { return grammar_of(asked.tools, tools_); }));
  return form;
}

}  // namespace systole
