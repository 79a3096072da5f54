#include "ground/net/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <new>

#include "ground/base/late_library.h"
#include "ground/base/letter_case.h"
#include "ground/base/shown_text.h"
#include "ground/net/socket.h"
#include "ground/net/url.h"

namespace systole {
namespace {

constexpr long kBulk = 256 << 10;  // bytes of a buffer; libcurl's own has 16 KiB

// The libcurl functions in use.
struct Curl {
  decltype(&::curl_global_init) global_init = nullptr;
  decltype(&::curl_easy_init) init = nullptr;
  decltype(&::curl_easy_reset) reset = nullptr;
  decltype(&::curl_easy_cleanup) cleanup = nullptr;
  CURLcode (*set)(CURL*, CURLoption, ...) = nullptr;
  CURLcode (*info)(CURL*, CURLINFO, ...) = nullptr;
  decltype(&::curl_easy_perform) perform = nullptr;
  decltype(&::curl_easy_strerror) reason = nullptr;
  decltype(&::curl_slist_append) append = nullptr;
  decltype(&::curl_slist_free_all) free_all = nullptr;
};

Result<Curl> load_curl() {
  const LateLibrary library =
      TRY(LateLibrary::load({"libcurl.so.4", "libcurl4", "clusters are spoken to over HTTPS by libcurl"}));
  Curl curl;
  TRY(library.fill(curl.global_init, "curl_global_init"));
  TRY(library.fill(curl.init, "curl_easy_init"));
  TRY(library.fill(curl.reset, "curl_easy_reset"));
  TRY(library.fill(curl.cleanup, "curl_easy_cleanup"));
  TRY(library.fill(curl.set, "curl_easy_setopt"));
  TRY(library.fill(curl.info, "curl_easy_getinfo"));
  TRY(library.fill(curl.perform, "curl_easy_perform"));
  TRY(library.fill(curl.reason, "curl_easy_strerror"));
  TRY(library.fill(curl.append, "curl_slist_append"));
  TRY(library.fill(curl.free_all, "curl_slist_free_all"));
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
    return error(ErrorKind::unsupported, "libcurl does not begin: no memory, or no TLS");
  return curl;
}

const Result<Curl>& curl_here() {
  static const Result<Curl> loaded = load_curl();
  return loaded;
}

// A curl_slist: headers and other lists.
class Lines {
 public:
  explicit Lines(const Curl& curl) : curl_(curl) {}
  Lines(const Lines&) = delete;
  ~Lines() { curl_.free_all(list_); }
  void add(const std::string& line) {
    curl_slist* longer = curl_.append(list_, line.c_str());
    if (longer == nullptr) throw std::bad_alloc();
    list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  const Curl& curl_;
  curl_slist* list_ = nullptr;
};

// A response being received.
struct Arriving {
  const HttpRequest& request;
  HttpReply reply;
  bool too_large = false;
  int tries = 0;
};

// "Name: value" or the status line. A second status line starts the response anew (100 Continue).
std::size_t take_header(char* text, std::size_t size, std::size_t count, void* to) {
  HttpReply& reply = static_cast<Arriving*>(to)->reply;
  std::string_view line(text, size * count);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {
    reply.headers.clear();
    reply.status = 0;
    const std::size_t space = std::min(line.find(' '), line.size() - 1) + 1;
    std::from_chars(line.data() + space, line.data() + line.size(), reply.status);
  } else if (const std::size_t colon = line.find(':'); colon != line.npos) {
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const std::size_t begin = std::min(line.find_first_not_of(' ', colon + 1), line.size());
    reply.headers.emplace_back(std::move(name), std::string(line.substr(begin)));
  }
  return size * count;
}

std::size_t take_body(char* text, std::size_t size, std::size_t count, void* to) {
  Arriving& arriving = *static_cast<Arriving*>(to);
  const std::string_view piece(text, size * count);
  if (arriving.request.take && arriving.reply.status / 100 == 2) {
    arriving.reply.ended = !arriving.request.take(piece);
    return arriving.reply.ended ? 0 : piece.size();
  }
  const auto most = static_cast<std::size_t>(arriving.request.most.count());
  arriving.too_large = piece.size() > most - std::min(most, arriving.reply.body.size());
  if (arriving.too_large) return 0;
  arriving.reply.body += piece;
  return piece.size();
}

// Before each try on a connection.
int begin_try(void* to, char*, char*, int, int) {
  Arriving& arriving = *static_cast<Arriving*>(to);
  return ++arriving.tries > 1 && arriving.request.once ? CURL_PREREQFUNC_ABORT : CURL_PREREQFUNC_OK;
}

int look_up(void* to, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  Arriving& arriving = *static_cast<Arriving*>(to);
  arriving.reply.ended = arriving.reply.ended || arriving.request.cancelled();
  return arriving.reply.ended ? 1 : 0;
}

bool is_certificate(CURLcode code) {
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE: return true;
    default: return false;
  }
}

}  // namespace

struct HttpClient::State {
  const Curl& curl;
  CURL* easy;
  HttpTrust trust;
  char said[CURL_ERROR_SIZE] = {};

  ~State() { curl.cleanup(easy); }

  template <typename Value>
  void set(CURLoption option, Value value) {
    const CURLcode code = curl.set(easy, option, value);
    if (code == CURLE_OUT_OF_MEMORY) throw std::bad_alloc();
    CHECK(code == CURLE_OK, "libcurl takes no option {}: {}", static_cast<int>(option), curl.reason(code));
  }
  void set_pem(const PemText& pem, CURLoption blob, CURLoption file) {
    if (pem.text.empty()) {
      if (!pem.file.empty()) set(file, pem.file.c_str());
      return;
    }
    curl_blob text{const_cast<char*>(pem.text.data()), pem.text.size(), CURL_BLOB_COPY};
    set(blob, &text);
  }
  void set_trust(const std::string& host) {
    set_pem(trust.authorities, CURLOPT_CAINFO_BLOB, CURLOPT_CAINFO);
    if (!trust.authorities.empty()) set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // only the given
    set_pem(trust.certificate, CURLOPT_SSLCERT_BLOB, CURLOPT_SSLCERT);
    set_pem(trust.key, CURLOPT_SSLKEY_BLOB, CURLOPT_SSLKEY);
    set(CURLOPT_SSL_VERIFYPEER, trust.checks_certificate ? 1L : 0L);
    set(CURLOPT_SSL_VERIFYHOST, trust.checks_certificate ? 2L : 0L);
    if (is_loopback(host) || host.starts_with("169.254.")) {  // this machine, and its cloud's metadata server
      set(CURLOPT_PROXY, "");
    } else if (!trust.proxy.empty()) {
      set(CURLOPT_PROXY, trust.proxy.c_str());
    }
  }
  void set_request(const HttpRequest& request, curl_slist* headers, Arriving& arriving) {
    set(CURLOPT_ERRORBUFFER, said);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));  // ending a stream ends its connection
    set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
    if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);  // else a body of its Content-Length is waited for
    if (const std::string_view body = request.body.empty() ? request.borrowed_body : request.body; !body.empty()) {
      set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
      set(CURLOPT_POSTFIELDS, body.data());
    }
    if (request.bulk) {
      set(CURLOPT_BUFFERSIZE, kBulk);
      set(CURLOPT_UPLOAD_BUFFERSIZE, kBulk);
    }
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_CONNECTTIMEOUT_MS, milliseconds(request.connect_timeout));
    set(CURLOPT_TIMEOUT_MS, milliseconds(request.timeout));
    if (request.idle.count() > 0) {
      set(CURLOPT_LOW_SPEED_LIMIT, 1L);
      set(CURLOPT_LOW_SPEED_TIME, std::max(1L, static_cast<long>(request.idle.count())));
    }
    set(CURLOPT_TCP_KEEPALIVE, 1L);
    set(CURLOPT_HEADERFUNCTION, &take_header);
    set(CURLOPT_HEADERDATA, &arriving);
    set(CURLOPT_WRITEFUNCTION, &take_body);
    set(CURLOPT_WRITEDATA, &arriving);
    set(CURLOPT_PREREQFUNCTION, &begin_try);
    set(CURLOPT_PREREQDATA, &arriving);
    set(CURLOPT_NOPROGRESS, request.cancelled ? 0L : 1L);
    set(CURLOPT_XFERINFOFUNCTION, &look_up);
    set(CURLOPT_XFERINFODATA, &arriving);
  }
  // Checks the certificate against server_name, but connects to the URL's address.
  void set_place(const std::string& url, Lines& connect_to) {
    const UrlParts parts(url);
    if (trust.server_name.empty()) return set(CURLOPT_URL, url.c_str());
    const std::string user = parts.user.empty() ? "" : parts.user + "@";
    set(CURLOPT_URL, (parts.scheme + user + trust.server_name + parts.port + parts.path).c_str());
    connect_to.add("::" + parts.host + (parts.port.empty() ? ":" : parts.port));
    set(CURLOPT_CONNECT_TO, connect_to.get());
  }
  static long milliseconds(Seconds s) { return static_cast<long>(s.count() * 1000); }

  // The error for all other codes.
  Error failed(CURLcode code, const HttpRequest& request, const Arriving& arriving) {
    const UrlParts parts(request.url);
    const std::string host = parts.host + parts.port;
    const std::string why = said[0] != 0 ? std::string(said) : std::string(curl.reason(code));
    if (arriving.tries > 1 && request.once)
      return error(ErrorKind::io, "no answer from {}: the connection ended before one", host);
    if (arriving.too_large)
      return error(ErrorKind::does_not_fit, "{} answers with more than {}", host, to_string(request.most));
    if (is_certificate(code))
      return error(ErrorKind::invalid, "the certificates between here and {} do not hold: {}", host, why);
    if (code == CURLE_URL_MALFORMAT || code == CURLE_UNSUPPORTED_PROTOCOL)
      return error(ErrorKind::invalid, "'{}' is no address of the form https://HOST[:PORT]/PATH",
                   without_passwords(request.url));
    return error(ErrorKind::io, "no answer from {}: {}", host, why);
  }
};

HttpClient::HttpClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpClient::~HttpClient() = default;

Result<std::unique_ptr<HttpClient>> HttpClient::open(HttpTrust trust) {
  const Result<Curl>& curl = curl_here();
  if (!curl.ok()) return curl.error();
  CURL* easy = curl->init();
  if (easy == nullptr) throw std::bad_alloc();
  return std::unique_ptr<HttpClient>(new HttpClient(std::unique_ptr<State>(new State{*curl, easy, std::move(trust)})));
}

Result<HttpReply> HttpClient::send(const HttpRequest& request) {
  const Curl& curl = state_->curl;
  curl.reset(state_->easy);  // resets only options; connections stay open
  state_->said[0] = 0;
  Lines headers(curl), connect_to(curl);
  for (const auto& [name, value] : request.headers) headers.add(name + ": " + value);
  headers.add("Expect:");  // sends the body at once
  const bool has_body = !request.body.empty() || !request.borrowed_body.empty();
  const bool has_length = std::any_of(request.headers.begin(), request.headers.end(),
                                      [](const auto& header) { return lower_case(header.first) == "content-length"; });
  if (!has_body && !has_length && (request.method == "POST" || request.method == "PUT"))
    headers.add("Content-Length: 0");
  Arriving arriving{request, {}};
  state_->set_trust(UrlParts(request.url).bare_host());
  state_->set_request(request, headers.get(), arriving);
  state_->set_place(request.url, connect_to);
  const CURLcode code = curl.perform(state_->easy);
  if (code != CURLE_OK && !arriving.reply.ended) return state_->failed(code, request, arriving);
  return std::move(arriving.reply);
}

}  // namespace systole
