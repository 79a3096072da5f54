#include "operate/import/pod.h"

#include "operate/import/flags.h"
#include "operate/import/launchers.h"
#include "operate/import/script.h"
#include "operate/render/kube_quantity.h"

namespace systole {
namespace {

// Of several the one with devices, else the first.
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

// $(X) is put in by Kubernetes, which a shell does with ${X}; $$ is a dollar.
ShellWord kubernetes_word(const std::string& text) {
  ShellWord word;
  std::string plain;  // not yet in raw
  const auto flush = [&] {
    if (!plain.empty()) word.raw += plain_word(plain).raw;
    plain.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '$') {
      plain += text[++i];
    } else if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '(') {
      const std::size_t end = text.find(')', i);
      const std::string name = end == text.npos ? "" : text.substr(i + 2, end - i - 2);
      const bool variable =
          !name.empty() &&
          name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == name.npos;
      if (!variable) {
        plain += text[i];
        continue;
      }
      flush();
      word.raw += "\"${" + name + "}\"";
      word.expands = true;
      i = end;
    } else {
      plain += text[i];
    }
  }
  flush();
  word.text = word.expands ? text : plain_word(text).text;
  if (!word.expands && word.raw.empty()) word.raw = "''";
  if (!word.expands && text.find("$$") != text.npos) {
    word.text.clear();
    for (std::size_t i = 0; i < text.size(); ++i) {
      word.text += text[i];
      if (text[i] == '$' && i + 1 < text.size() && text[i + 1] == '$') ++i;
    }
  }
  return word;
}

void read_texts(TakenFields& fields, const std::string& at, std::vector<ShellWord>& words) {
  const Node* list = fields.take(at);
  if (list == nullptr) return;
  for (const Node& item : list->items()) words.push_back(kubernetes_word(item.text()));
}

bool is_shell(const ShellWord& word) {
  const std::string base = word.text.substr(word.text.rfind('/') + 1);
  return base == "sh" || base == "bash" || base == "dash";
}

// [bash, -c, SCRIPT]: read as a script where it is one that can be, else taken as it is.
void read_program_of(TakenFields& fields, const std::string& at, Draft& draft) {
  std::vector<ShellWord> words;
  read_texts(fields, at + ".command", words);
  const bool has_command = !words.empty();
  read_texts(fields, at + ".args", words);
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
  const bool script = words.size() == 3 && is_shell(words[0]) && words[1].text.starts_with('-') &&
                      words[1].text.ends_with('c') && !words[2].expands;
  if (!script) return read_program(words, {}, draft);
  Draft trial = draft;
  read_script(words[2].text, at, trial);
  if (trial.num_errors() == draft.num_errors() && trial.has("command")) {
    draft = std::move(trial);
    return;
  }
  draft.left_out(at + ".command", "the script is started once a rank, as it is");
  set_command(words, {}, at + ".command", draft);
}

void read_environment(TakenFields& fields, const std::string& at, Draft& draft) {
  const Node* env = fields.find(at + ".env");
  if (env == nullptr) return;
  for (std::size_t i = 0; i < env->items().size(); ++i) {
    const std::string item = fmt::format("{}.env.{}", at, i);
    const std::string name = fields.text(item + ".name");
    if (const Node* value = fields.take(item + ".value")) {
      draft.variable(name, value->text(), item + " " + name);
    } else if (const Node* field = fields.take(item + ".valueFrom")) {
      const bool secret = field->find("secretKeyRef") != nullptr;
      draft.left_out(item + " " + name, secret ? "its value is a secret, which a workload does not hold"
                                               : "its value is known only where it runs");
    } else {
      draft.variable(name, "", item + " " + name);
    }
  }
}

void read_resources(TakenFields& fields, const std::string& at, Draft& draft) {
  const auto both = [&](const char* name) {  // limits count where requests are silent
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
    draft.ask(&AskedResources::millicpus_per_node, static_cast<std::int64_t>(std::llround(*cpus * 1000)),
              "cpu " + both("cpu"));
  if (const auto memory = number("memory"))
    draft.ask(&AskedResources::memory_per_node, Bytes(static_cast<std::int64_t>(*memory)), "memory " + both("memory"));
  if (const auto gpus = number("nvidia.com/gpu"); gpus && *gpus > 0)
    draft.ask(&AskedResources::gpus_per_node, static_cast<std::int64_t>(*gpus),
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
        fields.take(mount_at);  // render gives one to each program on GPUs
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
      draft.left_out(container + ".image", "it is another image each day: render asks for a tag or a digest");
  }
  read_resources(fields, container, draft);
  read_environment(fields, container, draft);
  read_mounts(fields, at, container, draft);
  read_program_of(fields, container, draft);
  if (const Node* selector = fields.take(at + ".nodeSelector"))
    for (const Node::Entry& entry : selector->entries())
      draft.set_entry("kubernetes.selector", entry.key, entry.value.text(), at + ".nodeSelector");
  if (const std::string account = fields.text(at + ".serviceAccountName"); !account.empty())
    draft.set("kubernetes.service_account", account, at + ".serviceAccountName");
  for (const char* ports : {".ports", ".imagePullPolicy", ".terminationMessagePolicy"}) fields.take(container + ports);
  fields.take(at + ".restartPolicy");
  const FlagValue grace{fields.text(at + ".terminationGracePeriodSeconds"), at + ".terminationGracePeriodSeconds"};
  constexpr std::int64_t kBeyond = 5;  // that render gives beyond the notice
  if (grace.text.empty()) return;
  if (const auto seconds = count_of(draft, grace, 0))
    draft.notice(std::max<std::int64_t>(1, *seconds - kBeyond), grace.from);
}

}  // namespace systole
