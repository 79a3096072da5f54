#include "operate/cli/run_scene.h"

namespace systole::cli {

namespace {

RunMessages messages_of(Printer& out) {
  return {.message = [&out](const std::string& text) { out.message(text); },
          .notice = [&out](const std::string& text) { out.notice(text); },
          .line = [&out](const std::string& text) { out.data(text); },
          .warning = [&out](const Error& error) { out.warning(error); }};
}

}  // namespace

RunScene scene_of(Context& context) { return scene_of(context, context.clock); }

RunScene scene_of(Context& context, Clock& clock) { return {messages_of(context.out), clock, context.command_line}; }

FollowScene follow_scene_of(Context& context, const std::string& folder) {
  return {folder, context.clock, messages_of(context.out)};
}

RunViewers viewers_of(ProgressLines& lines) {
  return {.began = [&lines](const TrainState& state) { lines.begin(state.step, state.tokens, state.trained); },
          .event = [&lines](const Event& event) { lines.see(event); }};
}

}  // namespace systole::cli
