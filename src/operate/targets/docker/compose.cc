// compose.yaml of `workload: serve`, and what its image says of itself: the port and the health check.
#include <cmath>

#include "operate/render/quote.h"
#include "operate/render/server_words.h"
#include "operate/render/template.h"
#include "operate/targets/docker/docker.h"

namespace systole {
namespace {

constexpr const char* kTokenFile = "/run/secrets/token";  // where compose puts the secret `token`

constexpr const char* kCompose = R"(
name: $name
services:
  server:
    image: $image
    command: $command
    user: $user
    ports: [$port]
    volumes: [{ type: bind, source: $from, target: $from, read_only: true, bind: { create_host_path: false } }]
    secrets: [token]
    cpus: $cpus
    mem_limit: $memory
    cap_drop: [ALL]
    security_opt: ["no-new-privileges:true"]
    restart: unless-stopped
    stop_grace_period: $grace
    deploy: $deploy
secrets: { token: { file: ./token } }
)";

constexpr const char* kGpu = R"(
resources: { reservations: { devices: [{ driver: nvidia, count: 1, capabilities: [gpu] }] } }
)";

// Needs bash alone, which both bases have.
constexpr const char* kAsk =
    R"(exec 3<>/dev/tcp/127.0.0.1/PORT && printf 'GET /health/ready HTTP/1.0\r\n\r\n' >&3 && read -r _ code _ <&3 && )"
    R"([ "$code" = 200 ])";

// Compose would substitute a variable.
std::string compose_value(std::string_view text) {
  std::string value;
  for (const char c : text) value += c == '$' ? std::string("$$") : std::string(1, c);
  return value;
}

// The server of a container, on what the image is for.
Result<ClusterJob> job_of(const RenderRequest& ask, ImageAccelerator accelerator) {
  ClusterJob job;
  job.run = TRY(run_name(ask.run, ask.workload));
  job.gpus_per_node = ask.workload.resources.gpus_per_node.value_or(0);
  TRY(set_hardware(ask, job));
  TRY(set_replicas(ask, job, CountRange{1, 1}));
  if (accelerator == ImageAccelerator::tpu) return job;
  job.slice.reset();
  job.gpus_per_node = accelerator == ImageAccelerator::cuda ? job.pods_per_node : 0;
  return job;
}

Node compose_of(const RenderRequest& ask, const ClusterJob& job, std::int64_t servers) {
  const Workload& w = ask.workload;
  const std::vector<std::string> words = server_words(w, job, {.token_file = kTokenFile, .replicas = servers});
  Node command;
  for (std::size_t i = 1; i < words.size(); ++i) command.push(compose_value(words[i]));  // behind the ENTRYPOINT
  Node cpus, memory;
  if (w.resources.threads) cpus = *w.resources.threads * servers;
  if (w.resources.memory) memory = fmt::format("{}b", w.resources.memory->count() * servers);
  return fill(kCompose, {{"name", job.run},
                         {"image", compose_value(w.image)},
                         {"command", std::move(command)},
                         {"user", "${SYSTOLE_USER:-10001:10001}"},
                         {"port", fmt::format("${{SYSTOLE_ADDRESS:-127.0.0.1}}:{0}:{0}", kServerPort)},
                         {"from", compose_value(w.serve.from)},
                         {"cpus", std::move(cpus)},
                         {"memory", std::move(memory)},
                         {"grace", fmt::format("{}s", server_grace(job) + 10)},
                         {"deploy", job.gpus_per_node > 0 ? fill(kGpu, {}) : Node()}});
}

}  // namespace

std::string health_lines(const Workload& workload) {
  const std::string ask = replaced(kAsk, "PORT", std::to_string(kServerPort));
  return fmt::format("EXPOSE {}\nHEALTHCHECK --interval=5s --timeout=3s --start-period={:.0f}s --retries=3 CMD {}\n",
                     kServerPort, std::ceil(startup_budget(workload).count()),
                     to_json(Node::sequence({"/bin/bash", "-c", ask})));
}

Status add_compose(const RenderRequest& ask, ImageAccelerator accelerator, Rendered& rendered) {
  const Workload& w = ask.workload;
  TRY(check_served(w, true, "on the machine"));
  const ClusterJob job = TRY(job_of(ask, accelerator));
  if (accelerator == ImageAccelerator::tpu) {
    rendered.warnings.push_back("compose.yaml: none is written for TPUs; --on kubernetes starts servers on them");
    return {};
  }
  const std::int64_t servers = TRY(servers_of_machine(ask.workload, job, rendered.warnings));
  rendered.files.push_back({"compose.yaml", made_from(ask, job) + to_yaml(compose_of(ask, job, servers))});
  if (!w.claims.empty() || !w.volumes.empty())
    rendered.warnings.push_back(fmt::format("{}: compose.yaml mounts {} of its own machine in their place",
                                            w.claims.empty() ? "volumes" : "claims", comment_text(w.serve.from)));
  const std::string place = shell_word(ask.place),
                    compose = fmt::format("docker compose --file {}/compose.yaml", place);
  rendered.commands = {
      {"token",
       fmt::format("[ -s {0}/token ] || (umask 077; od -An -tx1 -N16 /dev/urandom | tr -d ' \\n' >{0}/token)", place)},
      {"start", fmt::format("SYSTOLE_USER=\"$(id -u):$(id -g)\" {} up --detach --wait", compose)},
      {"look", compose + " ps"},
      {"reach", fmt::format("{} http://127.0.0.1:{}/v1/models", asking_with(place + "/token"), kServerPort)},
      {"stop", compose + " down"}};
  return {};
}

}  // namespace systole
