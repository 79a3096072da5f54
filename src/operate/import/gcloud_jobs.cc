#include "operate/import/gcloud_jobs.h"

#include "describe/spec/schema.h"
#include "operate/import/gcloud_lists.h"
#include "operate/import/gcloud_machines.h"
#include "operate/import/launchers.h"
#include "operate/import/script.h"

namespace systole {
namespace {

using Value = FlagValue;

class CustomJob {
 public:
  CustomJob(const std::vector<ParsedFlag>& seen, Draft& draft) : seen_(seen), draft_(draft) {}

  void read(const std::string& line) {
    for (const ParsedFlag& flag : seen_) {
      const auto& [text, from] = flag.value;
      if (flag.expands)
        draft_.left_out(from, "its value is known only where it runs");
      else if (flag.name == "display-name")
        draft_.set("name", text, from);
      else if (flag.name == "timeout")  // seconds, or like 2h
        draft_.set("resources.longest", text.find_first_not_of("0123456789") == text.npos ? text + "s" : text, from);
      else if (flag.name == "worker-pool-spec")
        pool(flag.value);
      else if (flag.name == "command")
        add(command_, text);
      else if (flag.name == "args")
        add(arguments_, text);
      else if (flag.name == "labels")
        labels(flag.value);
      else if (flag.name == "service-account" && is_google_account(text))
        draft_.set("kubernetes.gcp_service_account", text, from);
      else if (flag.name == "service-account")
        draft_.left_out(from, "kubernetes.gcp_service_account is one as NAME@PROJECT.iam.gserviceaccount.com");
      else if (flag.name == "network")
        draft_.left_out(from, "pods are in the network of their cluster: gke.network");
      else
        draft_.left_out(from, std::string(flag.why));
    }
    if (nodes_ > 0)
      draft_.ask(&RequestedResources::nodes, CountRange{nodes_, nodes_}, "--worker-pool-spec replica-count");
    const std::string accelerators = gcloud_accelerators(machine_, accelerator_, draft_);
    if (!accelerators.empty()) draft_.set("resources.accelerators", accelerators, "--worker-pool-spec");
    if (command_.empty() && arguments_.empty()) return draft_.left_out(line, "it starts no program");
    if (command_.empty()) {
      draft_.wrong(
          error(ErrorKind::unsupported, "--args: they are those of the image's own program, which is not known here")
              .hinted("say --command, too"));
      return;
    }
    start();
  }

 private:
  void labels(const Value& value) {
    for (const auto& [name, said] : gcloud_map(value.text)) draft_.set_entry("labels", name, said, value.from);
  }

  static void add(std::vector<std::string>& to, std::string_view list) {
    for (std::string& item : gcloud_list(list)) to.push_back(std::move(item));
  }

  void start() {
    // A single item with blanks is a command line; Vertex AI would look for a program with that whole name.
    std::string script;
    const bool line = command_.size() == 1 && command_[0].find(' ') != std::string::npos;
    for (const std::string& word : command_)
      script += (script.empty() ? "" : " ") + (line ? word : plain_word(word).raw);
    for (const std::string& word : arguments_) script += " " + plain_word(word).raw;
    read_script(script, "gcloud --command", draft_);
  }

  void pool(const Value& value) {
    std::string same;
    std::int64_t replicas = 1;
    std::string count;
    for (const auto& [name, said] : gcloud_map(value.text)) {
      const std::string from = "--worker-pool-spec " + name + "=" + said;
      if (name == "replica-count") {
        replicas = count_of(draft_, {said, from}).value_or(1);
        continue;
      }
      same += name + "=" + said + "\n";
      if (name == "accelerator-count") {
        count = said;
        if (const auto n = count_of(draft_, {said, from})) draft_.ask(&RequestedResources::gpus_per_node, *n, from);
      } else if (name == "container-image-uri" || name == "executor-image-uri") {
        draft_.set("image", said, from);
      } else if (name == "machine-type") {
        machine_ = said;
      } else if (name == "accelerator-type") {
        accelerator_ = said;
      } else if (name == "script" || name == "python-module") {
        command_ = name == "script" ? std::vector<std::string>{"python3", said}
                                    : std::vector<std::string>{"python3", "-m", said};
      } else if (name == "local-package-path" || name == "requirements" || name == "extra-packages") {
        draft_.left_out(from, "the image has the files: systole render --on docker");
      } else {
        draft_.left_out(from, "no key of a workload says it");
      }
    }
    if (!accelerator_.empty() && accelerator_.find("type=") == accelerator_.npos)
      accelerator_ = "type=" + accelerator_ + ",count=" + (count.empty() ? "1" : count);
    if (nodes_ > 0 && same != pool_) {
      draft_.wrong(error(ErrorKind::unsupported, "{}: another kind of machine; nodes of a workload are all alike",
                         origin(value.from))
                       .hinted("import each pool on its own"));
      return;
    }
    pool_ = same;
    nodes_ = std::min<std::int64_t>(nodes_ + replicas, 1'000'000'000);
  }

  const std::vector<ParsedFlag>& seen_;
  Draft& draft_;
  std::vector<std::string> command_, arguments_;
  std::string machine_, accelerator_, pool_;
  std::int64_t nodes_ = 0;
};

}  // namespace

void read_custom_job(const std::vector<ParsedFlag>& seen, const std::string& line, Draft& draft) {
  CustomJob(seen, draft).read(line);
}

}  // namespace systole
