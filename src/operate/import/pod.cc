#include "operate/import/pod.h"

#include <map>
#include <optional>

#include "operate/import/flags.h"
#include "operate/import/launchers.h"
#include "operate/import/wrappers.h"
#include "operate/render/kube_quantity.h"

namespace systole {
namespace {

// Among several the one with devices, otherwise the first.
std::optional<std::size_t> main_container(const TakenFields& fields, const std::string& at, Draft& draft) {
  const Node* containers = fields.find(at + ".containers");
  if (containers == nullptr || containers->items().empty()) {
    draft.wrong(error(ErrorKind::invalid, "{}.containers: the pod has none", at).hinted("paste the whole manifest"));
    return std::nullopt;
  }
  for (std::size_t c = 0; c < containers->items().size(); ++c)
    for (const char* device : {"nvidia.com/gpu", "google.com/tpu"})
      if (fields.find(fmt::format("{}.containers.{}.resources.limits.{}", at, c, device)) != nullptr) return c;
  return 0;
}

// A container's variables for Kubernetes' substitution of $(NAME): a text; nothing: known only in the cluster.
using Variables = std::map<std::string, std::optional<std::string>>;

bool is_variable_name(std::string_view name) {
  return !name.empty() &&
         name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") == name.npos;
}

// A part of a text: literal, or a variable's name. $$ is a dollar.
struct Part {
  std::string text;
  bool name = false;
};
std::vector<Part> parts_of(std::string_view text) {
  std::vector<Part> parts(1);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dollar = text[i] == '$' && i + 1 < text.size();
    const std::size_t end = dollar && text[i + 1] == '(' ? text.find(')', i) : text.npos;
    const std::string_view name = end == text.npos ? "" : text.substr(i + 2, end - i - 2);
    if (dollar && text[i + 1] == '$') {
      parts.back().text += text[++i];
    } else if (is_variable_name(name)) {
      parts.push_back({std::string(name), true});
      parts.emplace_back();
      i = end;
    } else {
      parts.back().text += text[i];
    }
  }
  return parts;
}

// A shell substitutes the agent's variables and those known only in the cluster. An undefined name stays unchanged in a
// script, where $(NAME) is a command substitution.
ShellWord kubernetes_word(const std::string& text, const Variables& variables, bool script) {
  ShellWord word;
  std::string plain;
  for (const Part& part : parts_of(text)) {
    const auto said = variables.find(part.text);
    const bool known = said != variables.end();
    if (!part.name) {
      plain += part.text;
    } else if (known && said->second && !is_agents_variable(part.text)) {
      plain += *said->second;
    } else if (script) {
      plain += known ? "${" + part.text + "}" : "$(" + part.text + ")";
    } else {
      word.raw += plain.empty() ? "" : plain_word(plain).raw;
      word.raw += "\"${" + part.text + "}\"";
      word.text += plain + "$(" + part.text + ")";
      word.expands = true;
      plain.clear();
    }
  }
  if (!plain.empty() || !word.expands) word.raw += plain_word(plain).raw;
  word.text += plain;
  return word;
}

bool is_shell(const ShellWord& word) {
  const std::string base = program_name(word);
  return base == "sh" || base == "bash" || base == "dash";
}

// The command and its arguments; the word after a shell's -c is a script.
std::vector<ShellWord> container_words(TakenFields& fields, const std::string& at, const Variables& variables) {
  std::vector<ShellWord> words;
  for (const char* list : {".command", ".args"}) {
    const Node* texts = fields.take(at + list);
    if (texts == nullptr) continue;
    for (const Node& item : texts->items()) {
      const bool script =
          words.size() > 1 && is_shell(words[0]) && words.back().text[0] == '-' && words.back().text.ends_with('c');
      words.push_back(kubernetes_word(item.text(), variables, script));
    }
  }
  return words;
}

void read_program_of(TakenFields& fields, const std::string& at, const Variables& variables, Draft& draft) {
  const bool has_command = fields.find(at + ".command") != nullptr;
  const std::vector<ShellWord> words = container_words(fields, at, variables);
  if (!has_command && !words.empty()) {
    draft.wrong(
        error(ErrorKind::unsupported, "{}.args: they are those of the image's own program, which is not known here", at)
            .hinted("say command: in the manifest, too"));
    return;
  }
  if (words.empty()) {
    draft.wrong(error(ErrorKind::unsupported, "{}: it runs the image's own program, which is not known here", at)
                    .hinted("say command: in the manifest"));
    return;
  }
  Setup setup;
  if (const std::string folder = fields.text(at + ".workingDir"); !folder.empty())
    setup.lines.push_back("cd " + plain_word(folder).raw);
  read_program(words, setup, draft);
}

// The text with earlier variables substituted, like Kubernetes; nothing if one is known only in the cluster. $(NAME)
// without a variable stays unchanged.
std::optional<std::string> expanded(const std::string& text, const Variables& variables, std::string& unknown) {
  std::string all;
  for (const Part& part : parts_of(text)) {
    const auto said = part.name ? variables.find(part.text) : variables.end();
    if (!part.name) {
      all += part.text;
    } else if (said == variables.end()) {
      unknown = part.text;
      all += "$(" + part.text + ")";
    } else if (said->second) {
      all += *said->second;
    } else {
      unknown = part.text;
      return std::nullopt;
    }
  }
  return all;
}

Variables read_environment(TakenFields& fields, const std::string& at, Draft& draft) {
  Variables variables;
  const Node* env = fields.find(at + ".env");
  if (env == nullptr) return variables;
  for (std::size_t i = 0; i < env->items().size(); ++i) {
    const std::string item = fmt::format("{}.env.{}", at, i);
    const std::string name = fields.text(item + ".name"), from = item + " " + name;
    const Node* value = fields.take(item + ".value");
    const Node* field = value == nullptr ? fields.take(item + ".valueFrom") : nullptr;
    if (field != nullptr) {
      const bool secret = field->find("secretKeyRef") != nullptr;
      draft.left_out(from, secret ? "its value is a secret, which a workload does not hold"
                                  : "its value is known only where it runs");
      variables[name] = std::nullopt;
      continue;
    }
    std::string unknown;
    std::optional<std::string> text = expanded(value == nullptr ? "" : value->text(), variables, unknown);
    if (!text) {
      draft.left_out(from, fmt::format("$({}) in it is known only where it runs", unknown));
    } else {
      if (!unknown.empty())
        draft.note(from, fmt::format("$({}) stays as it stands: no variable in front of it has that name", unknown));
      draft.variable(name, *text, from);
    }
    // The agent sets its own variables, whatever the manifest says.
    variables[name] = is_agents_variable(name) ? std::nullopt : std::move(text);
  }
  return variables;
}

void read_resources(TakenFields& fields, const std::string& at, Draft& draft) {
  const auto both = [&](const char* name) {  // limits apply where requests are absent
    std::string found;
    for (const char* kind : {"limits", "requests"}) {
      const std::string path = fmt::format("{}.resources.{}.{}", at, kind, name);
      if (const std::string text = fields.text(path); !text.empty()) found = text;
    }
    return found;
  };
  const auto number = [&](const char* name) -> std::optional<double> {
    const std::string text = both(name);
    if (text.empty()) return std::nullopt;
    const std::optional<double> value = quantity_of(text);
    if (!value) draft.wrong(error(ErrorKind::invalid, "{}.resources: {}: '{}' is no quantity", at, name, origin(text)));
    return value;
  };
  if (const auto cpus = number("cpu"))
    draft.ask(&RequestedResources::millicpus_per_node, static_cast<std::int64_t>(std::llround(*cpus * 1000)),
              "cpu " + both("cpu"));
  if (const auto memory = number("memory"))
    draft.ask(&RequestedResources::memory_per_node, Bytes(static_cast<std::int64_t>(*memory)),
              "memory " + both("memory"));
  if (const auto gpus = number("nvidia.com/gpu"); gpus && *gpus > 0)
    draft.ask(&RequestedResources::gpus_per_node, static_cast<std::int64_t>(*gpus),
              "nvidia.com/gpu " + both("nvidia.com/gpu"));
}

void read_mounts(TakenFields& fields, const std::string& at, const std::string& container, Draft& draft) {
  const Node* mounts = fields.find(container + ".volumeMounts");
  const Node* volumes = fields.find(at + ".volumes");
  if (mounts == nullptr || volumes == nullptr) return;
  for (std::size_t m = 0; m < mounts->items().size(); ++m) {
    const Node* name = mounts->items()[m].find("name");
    const Node* path = mounts->items()[m].find("mountPath");
    if (name == nullptr || path == nullptr) continue;
    for (std::size_t v = 0; v < volumes->items().size(); ++v) {
      const Node& volume = volumes->items()[v];
      if (volume.find("name") == nullptr || volume.find("name")->text() != name->text()) continue;
      const std::string mount_at = fmt::format("{}.volumeMounts.{}", container, m),
                        volume_at = fmt::format("{}.volumes.{}", at, v);
      if (const Node* claim = volume.find("persistentVolumeClaim");
          claim != nullptr && claim->find("claimName") != nullptr) {
        draft.set_entry("claims", path->text(), claim->find("claimName")->text(), volume_at);
        for (const char* field : {".name", ".mountPath"}) fields.take(mount_at + field);
        for (const char* field : {".name", ".persistentVolumeClaim.claimName"}) fields.take(volume_at + field);
      } else if (path->text() == "/dev/shm" && volume.find("emptyDir") != nullptr) {
        fields.take(mount_at);  // render adds one for each GPU program
        fields.take(volume_at);
      }
    }
  }
}

}  // namespace

void read_pod(TakenFields& fields, const std::string& at, Draft& draft) {
  const std::optional<std::size_t> main = main_container(fields, at, draft);
  if (!main) return;
  const std::string container = fmt::format("{}.containers.{}", at, *main);
  fields.text(container + ".name");
  if (const std::string image = fields.text(container + ".image"); !image.empty()) {
    draft.set("image", image, container + ".image");
    if (image.ends_with(":latest") || image.substr(image.rfind('/') + 1).find_first_of(":@") == std::string::npos)
      draft.note(container + ".image", "it is another image each day: render asks for a tag or a digest");
  }
  read_resources(fields, container, draft);
  const Variables variables = read_environment(fields, container, draft);
  read_mounts(fields, at, container, draft);
  read_program_of(fields, container, variables, draft);
  if (const Node* selector = fields.take(at + ".nodeSelector"))
    for (const Node::Entry& entry : selector->entries())
      draft.set_entry("kubernetes.selector", entry.key, entry.value.text(), at + ".nodeSelector");
  if (const std::string account = fields.text(at + ".serviceAccountName"); !account.empty())
    draft.set("kubernetes.service_account", account, at + ".serviceAccountName");
  for (const char* ports : {".ports", ".imagePullPolicy", ".terminationMessagePolicy"}) fields.take(container + ports);
  fields.take(at + ".restartPolicy");
  const FlagValue grace{fields.text(at + ".terminationGracePeriodSeconds"), at + ".terminationGracePeriodSeconds"};
  constexpr std::int64_t kBeyond = 5;  // seconds that render adds to the notice
  if (grace.text.empty()) return;
  if (const auto seconds = count_of(draft, grace, 0))
    draft.notice(std::max<std::int64_t>(1, *seconds - kBeyond), grace.from);
}

}  // namespace systole
