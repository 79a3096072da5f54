#include "ground/store/testing/gcs_twin.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "ground/base/hash.h"
#include "ground/base/number_from.h"
#include "ground/net/http_request_head.h"
#include "ground/net/testing/http_stub.h"
#include "ground/store/gcs_api.h"
#include "ground/store/object_facts.h"

namespace systole {
namespace {

struct Stored {
  std::string bytes;
  std::int64_t generation = 0;
  std::map<std::string, std::string> metadata;
};

struct Session {
  std::string name, bytes;
  std::map<std::string, std::string> query;
  std::string done;  // the object, once it is one
};

struct Reply {
  int status = 200;
  std::string body = {};
  HttpHeaders headers = {};
};

std::uint32_t sum_of(const std::string& bytes) { return crc32c(std::as_bytes(std::span(bytes))); }

Reply failed(int status, const std::string& why) {
  return {status, to_json(Node::map({{"error", Node::map({{"code", status}, {"message", why}})}}))};
}

std::string decoded(std::string_view text) { return percent_decoded(text).value_or("?"); }

std::map<std::string, std::string> query_of(const std::string& text) {
  std::map<std::string, std::string> query;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('&', at), text.size()), equals = std::min(text.find('=', at), end);
    query[text.substr(at, equals - at)] =
        decoded(text.substr(std::min(equals + 1, end), end - std::min(equals + 1, end)));
    at = end + 1;
  }
  return query;
}

std::string value_of(const std::map<std::string, std::string>& of, const std::string& key) {
  const auto found = of.find(key);
  return found == of.end() ? "" : found->second;
}

}  // namespace

struct GcsTwin::State {
  const std::string bucket;
  mutable std::recursive_mutex mutex;
  std::map<std::string, Stored> objects, objects_before;
  std::map<std::string, Session> sessions;
  std::int64_t generations = 1'700'000'000'000'000, sessions_begun = 0;
  std::vector<GcsFault> faults;
  std::map<std::int64_t, std::function<void()>> acts;
  std::vector<GcsTwinRequest> requests;
  std::string token, payer;
  bool html = false, forbids = false, checks = true;
  std::size_t page = 1000;
  std::unique_ptr<StubServer> server;

  std::string resource(const std::string& name, const Stored& object) const {
    Node metadata = Node::map();
    for (const auto& [key, value] : object.metadata) metadata.set(key, value);
    return to_json(Node::map({{"kind", "storage#object"},
                              {"name", name},
                              {"bucket", bucket},
                              {"size", std::to_string(object.bytes.size())},
                              {"generation", std::to_string(object.generation)},
                              {"crc32c", crc32c_text(sum_of(object.bytes))},
                              {"metadata", metadata}}));
  }

  // Whether the condition of the query holds for the object of that name.
  bool holds(const std::map<std::string, std::string>& query, const std::string& name,
             const char* key = "ifGenerationMatch") const {
    const auto wanted = query.find(key);
    if (wanted == query.end()) return true;
    const auto there = objects.find(name);
    return (there == objects.end() ? "0" : std::to_string(there->second.generation)) == wanted->second;
  }

  Reply write(const std::string& name, std::string bytes, std::map<std::string, std::string> metadata,
              const std::map<std::string, std::string>& query, const std::string& sum) {
    if (checks && !sum.empty() && sum != crc32c_text(sum_of(bytes)))
      return failed(400, "Provided CRC32C \"" + sum + "\" doesn't match calculated CRC32C");
    if (!holds(query, name)) return failed(412, "At least one of the pre-conditions you specified did not hold.");
    objects_before = objects;
    Stored& object = objects[name] = {std::move(bytes), ++generations, std::move(metadata)};
    return {200, resource(name, object)};
  }

  Reply insert(const StubRequest& request, const std::map<std::string, std::string>& query) {
    if (value_of(query, "uploadType") == "resumable") {
      const std::string id = std::to_string(++sessions_begun);
      sessions[id] = {value_of(query, "name"), "", query, ""};
      return {200, "", {{"Location", server->url() + "/session/" + id}}};
    }
    const std::string kind = request.header("content-type"), key = "boundary=";
    const std::size_t at = kind.find(key);
    if (value_of(query, "uploadType") != "multipart" || at == kind.npos) return failed(400, "invalid uploadType");
    const std::string mark = "--" + kind.substr(at + key.size());
    const std::size_t head = request.body.find("\r\n\r\n"), next = request.body.find("\r\n" + mark, head),
                      begin = request.body.find("\r\n\r\n", next), end = request.body.rfind("\r\n" + mark + "--");
    if (end == std::string::npos || begin + 4 > end) return failed(400, "Malformed multipart body.");
    const Node about = parse_json(request.body.substr(head + 4, next - head - 4), "about").value();
    return write(about.text_at("name"), request.body.substr(begin + 4, end - begin - 4), metadata_of(about), query,
                 about.text_at("crc32c"));
  }
  static std::map<std::string, std::string> metadata_of(const Node& about) {
    std::map<std::string, std::string> metadata;
    if (const Node* given = about.find("metadata"); given != nullptr)
      for (const Node::Entry& entry : given->entries()) metadata[entry.key] = entry.value.text();
    return metadata;
  }

  Reply session(const StubRequest& request, const std::string& id, bool half) {
    const auto found = sessions.find(id);
    if (found == sessions.end()) return failed(404, "no such session");
    Session& s = found->second;
    if (request.method == "DELETE") {
      sessions.erase(found);
      return {499};
    }
    if (!s.done.empty()) return {200, s.done};
    std::string range = request.header("content-range");
    const std::string total = range.substr(range.rfind('/') + 1);
    if (range.starts_with("bytes ") && range[6] != '*') {
      const auto from = static_cast<std::size_t>(std::atoll(range.c_str() + 6));
      if (from <= s.bytes.size() && from + request.body.size() > s.bytes.size()) {
        const std::string fresh = request.body.substr(s.bytes.size() - from);
        s.bytes += half ? fresh.substr(0, fresh.size() / 2) : fresh;
      }
    }
    if (total != "*" && std::to_string(s.bytes.size()) == total) {
      const std::string hash = request.header("x-goog-hash"), sum = hash.starts_with("crc32c=") ? hash.substr(7) : "";
      Reply done = write(s.name, s.bytes, {}, s.query, sum);
      if (done.status == 200) s.done = done.body;
      return done;
    }
    if (s.bytes.empty()) return {308};
    return {308, "", {{"Range", fmt::format("bytes=0-{}", s.bytes.size() - 1)}}};
  }

  Reply list(const std::map<std::string, std::string>& query, bool stale) const {
    const std::string prefix = value_of(query, "prefix"), delimiter = value_of(query, "delimiter"),
                      after = value_of(query, "pageToken");
    Node items = Node::sequence(), prefixes = Node::sequence();
    std::string last, next;
    std::size_t count = 0;
    for (const auto& [name, object] : stale ? objects_before : objects) {
      const std::size_t cut = delimiter.empty() ? name.npos : name.find(delimiter, prefix.size());
      const std::string shown = cut == name.npos ? name : name.substr(0, cut + 1);
      if (!name.starts_with(prefix) || shown == last || (!after.empty() && shown <= after)) continue;
      if (count++ == page) {
        next = last;
        break;
      }
      last = shown;
      if (cut == name.npos) {
        items.push(Node::map({{"name", name}, {"size", std::to_string(object.bytes.size())}}));
      } else {
        prefixes.push(shown);
      }
    }
    Node found = Node::map({{"kind", "storage#objects"}});
    if (!items.items().empty()) found.set("items", items);
    if (!prefixes.items().empty()) found.set("prefixes", prefixes);
    if (!next.empty()) found.set("nextPageToken", next);
    return {200, to_json(found)};
  }

  Reply read(const StubRequest& request, const std::map<std::string, std::string>& query, const std::string& name,
             const Stored& object) const {
    const std::string wanted = value_of(query, "generation");
    if (!wanted.empty() && wanted != std::to_string(object.generation)) return failed(404, "No such object: " + name);
    if (value_of(query, "alt") != "media") return {200, resource(name, object)};
    HttpHeaders headers = {{"x-goog-generation", std::to_string(object.generation)},
                           {"x-goog-hash", "crc32c=" + crc32c_text(sum_of(object.bytes))},
                           {"x-goog-hash", "md5=AAAA"}};
    const std::string range = request.header("range");
    if (range.empty()) return {200, object.bytes, headers};
    const std::size_t dash = range.find('-'), size = object.bytes.size();
    const auto from = static_cast<std::size_t>(std::atoll(range.c_str() + 6));
    if (from >= size) return {416, "", {{"Content-Range", fmt::format("bytes */{}", size)}}};
    const std::size_t to = std::min(static_cast<std::size_t>(std::atoll(range.c_str() + dash + 1)), size - 1);
    headers.emplace_back("Content-Range", fmt::format("bytes {}-{}/{}", from, to, size));
    return {206, object.bytes.substr(from, to - from + 1), headers};
  }

  Reply rewrite(const StubRequest& request, const std::map<std::string, std::string>& query, const std::string& from,
                const std::string& to) {
    const auto source = objects.find(from);
    if (source == objects.end()) return failed(404, "No such object: " + from);
    if (!holds(query, from, "ifSourceGenerationMatch")) return failed(412, "the source");
    if (!holds(query, to)) return failed(412, "the destination");
    if (!query.contains("rewriteToken"))  // as of a long one
      return {200, R"({"kind":"storage#rewriteResponse","done":false,"rewriteToken":"a b"})"};
    const Reply written =
        write(to, source->second.bytes, metadata_of(parse_json(request.body, "about").value()), query, "");
    return {200, fmt::format(R"({{"kind":"storage#rewriteResponse","done":true,"resource":{}}})", written.body)};
  }

  Reply answer(const StubRequest& request, const std::map<std::string, std::string>& query, bool half, bool stale) {
    if (html)
      return {200, "<!DOCTYPE html><html><body>Sign in to the hotel</body></html>", {{"Content-Type", "text/html"}}};
    const std::string own = "/session/", objects_of = fmt::format("/storage/v1/b/{}/o", bucket);
    if (request.path.starts_with(own)) return session(request, request.path.substr(own.size()), half);
    if (forbids) return failed(403, "someone does not have storage.objects access");
    if (!token.empty() && request.header("authorization") != "Bearer " + token)
      return failed(401, "Invalid Credentials");
    if (!payer.empty() && value_of(query, "userProject") != payer)
      return failed(400, "Bucket is requester pays bucket but no user project provided.");
    if (request.path == "/upload" + objects_of) return insert(request, query);
    if (request.path == objects_of) return list(query, stale);
    if (!request.path.starts_with(objects_of + "/")) return failed(404, "The specified bucket does not exist.");
    const std::string rest = request.path.substr(objects_of.size() + 1),
                      copy = fmt::format("/rewriteTo/b/{}/o/", bucket);
    if (const std::size_t at = rest.find(copy); at != rest.npos)
      return rewrite(request, query, decoded(rest.substr(0, at)), decoded(rest.substr(at + copy.size())));
    const std::string name = decoded(rest);
    const auto found = objects.find(name);
    if (request.method == "DELETE" && found != objects.end() && !holds(query, name)) return failed(412, "changed");
    if (found == objects.end()) return failed(404, "No such object: " + bucket + "/" + name);
    if (request.method == "GET") return read(request, query, name, found->second);
    if (request.method != "DELETE") return failed(405, "no such method");
    objects_before = objects;
    objects.erase(found);
    return {204};
  }

  void handle(const StubRequest& request, StubAnswer& to) {
    using Kind = GcsFault::Kind;
    std::unique_lock lock(mutex);
    const std::map<std::string, std::string> query = query_of(request.query);
    std::map<std::string, std::string> headers(request.headers.begin(), request.headers.end());
    requests.push_back(
        {request.method, request.path + (request.query.empty() ? "" : "?" + request.query), query, headers});
    const auto n = static_cast<std::int64_t>(requests.size());
    if (const auto act = acts.find(n); act != acts.end()) act->second();
    const auto due = std::ranges::find_if(
        faults, [&](const GcsFault& f) { return f.request == n || (f.onwards && f.request <= n); });
    const bool fails = due != faults.end();
    const Kind fault = fails ? due->kind : Kind::refused;
    const auto is = [&](Kind kind) { return fails && fault == kind; };
    if (is(Kind::refused)) return;
    if (is(Kind::unavailable)) return to.whole(503, "Service Unavailable");
    if (is(Kind::too_many)) return to.whole(429, "Too Many Requests");
    if (is(Kind::duplicated)) answer(request, query, false, false);
    Reply reply = answer(request, query, is(Kind::half_taken), is(Kind::stale_list));
    lock.unlock();
    if (is(Kind::stalled)) to.wait();
    if (is(Kind::stalled) || (reply.body.empty() && is(Kind::truncated))) return;
    if (is(Kind::reply_lost)) return;
    if (is(Kind::delayed)) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (is(Kind::failed_late)) return to.whole(503, "Service Unavailable");
    if (is(Kind::truncated)) return to.cut(reply.status, reply.body, reply.headers, reply.body.size() / 2);
    if (is(Kind::flipped) && !reply.body.empty()) reply.body[reply.body.size() / 2] ^= 1;
    to.whole(reply.status, reply.body, reply.headers);
  }
};

GcsTwin::GcsTwin(std::string bucket) : state_(new State{.bucket = std::move(bucket)}) {
  state_->server = std::make_unique<StubServer>(
      [state = state_.get()](const StubRequest& request, StubAnswer& answer) { state->handle(request, answer); });
}
GcsTwin::~GcsTwin() { state_->server.reset(); }

std::string GcsTwin::url() const { return state_->server->url(); }

StoreAccess GcsTwin::access(std::shared_ptr<BearerSource> bearer, bool tries_once) const {
  StoreAccess access;
  access.gcs = [endpoint = url(), bearer]() -> Result<GcsAccess> {
    return GcsAccess{.bearer = bearer, .endpoint = endpoint, .part = 256 << 10, .parallel = 4};
  };
  access.retries = {.first = Seconds(0.001), .most = Seconds(0.01), .total = Seconds(tries_once ? -1.0 : 2.0)};
  return access;
}

void GcsTwin::inject(GcsFault fault) {
  const std::lock_guard lock(state_->mutex);
  state_->faults.push_back(fault);
}
void GcsTwin::clear_faults() {
  const std::lock_guard lock(state_->mutex);
  state_->faults.clear();
}
void GcsTwin::wants_token(std::string token) {
  const std::lock_guard lock(state_->mutex);
  state_->token = std::move(token);
}
void GcsTwin::wants_payer(std::string project) {
  const std::lock_guard lock(state_->mutex);
  state_->payer = std::move(project);
}
void GcsTwin::answers_html() {
  const std::lock_guard lock(state_->mutex);
  state_->html = true;
}
void GcsTwin::forbids() {
  const std::lock_guard lock(state_->mutex);
  state_->forbids = true;
}
void GcsTwin::page_size(std::size_t objects) {
  const std::lock_guard lock(state_->mutex);
  state_->page = objects;
}
void GcsTwin::before(std::int64_t request, std::function<void()> act) {
  const std::lock_guard lock(state_->mutex);
  state_->acts[request] = std::move(act);
}
void GcsTwin::ignores_checksums() {
  const std::lock_guard lock(state_->mutex);
  state_->checks = false;
}
void GcsTwin::store(const std::string& name, std::string bytes) {
  const std::lock_guard lock(state_->mutex);
  state_->objects_before = state_->objects;
  state_->objects[name] = {std::move(bytes), ++state_->generations, {}};
}
std::map<std::string, std::string> GcsTwin::objects() const {
  const std::lock_guard lock(state_->mutex);
  std::map<std::string, std::string> all;
  for (const auto& [name, object] : state_->objects) all[name] = object.bytes;
  return all;
}
std::size_t GcsTwin::sessions() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<std::size_t>(
      std::ranges::count_if(state_->sessions, [](const auto& session) { return session.second.done.empty(); }));
}
std::vector<GcsTwinRequest> GcsTwin::requests() const {
  const std::lock_guard lock(state_->mutex);
  return state_->requests;
}

}  // namespace systole
