#include "execute/comm/testing/tested_transports.h"

#include <gtest/gtest.h>

#include <thread>

#include "execute/comm/ring_transport.h"

namespace systole {

Transports TcpRanks::connect(std::int32_t n, Seconds patience) {
  EXPECT_TRUE(client().erase("tcp/").ok());
  Transports transports(static_cast<std::size_t>(n));
  std::vector<std::jthread> threads;
  for (std::int32_t r = 0; r < n; ++r) {
    threads.emplace_back([this, r, n, patience, &transports] {
      RendezvousClient rendezvous = client();
      transports[static_cast<std::size_t>(r)] = tcp_transport(rendezvous, r, n, options(patience)).value();
    });
  }
  threads.clear();
  return transports;
}

ConnectRanks ranks_over(const std::string& transport) {
  if (transport == "tcp" || transport == "tls") {
    return [tcp = std::make_shared<TcpRanks>(transport == "tls")](std::int32_t n, Seconds patience) {
      return tcp->connect(n, patience);
    };
  }
  std::optional<std::int64_t> ring_bytes;
  if (const std::size_t at = transport.find('_'); at != transport.npos)
    ring_bytes = std::stoll(transport.substr(at + 1));
  return [ring_bytes](std::int32_t n, Seconds patience) { return loopback(n, {patience}, ring_bytes).value(); };
}

std::vector<Status> results_on(const Transports& ranks,
                               const std::function<Status(std::int32_t rank, Transport&)>& body) {
  std::vector<Status> results(ranks.size());
  std::vector<std::jthread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r)
    threads.emplace_back([&, r] { results[r] = body(static_cast<std::int32_t>(r), *ranks[r]); });
  threads.clear();
  return results;
}

Outgoing message_to(std::int32_t rank, const std::vector<std::byte>& bytes) {
  const Bytes size(bytes.size());
  return {rank, bytes.data(), size, size, size};
}

Incoming message_from(std::int32_t rank, std::vector<std::byte>& bytes) {
  const Bytes size(bytes.size());
  return {rank, bytes.data(), size, size, size};
}

CollectiveCall sum_over(std::int64_t parts, Shape shape) {
  return {CollectiveKind::all_reduce, "data", parts, DType::f32, std::move(shape)};
}

Status run_once(Transport& transport, const CollectiveCall& call) {
  const auto communicator = TRY(make_communicator(transport, Mesh::make({{"data", transport.num_ranks()}}).value()));
  std::vector<std::byte> x(static_cast<std::size_t>(bytes_of(call.dtype, call.shape).count() * call.parts)),
      y(x.size());
  const auto prepared = TRY(communicator->prepare(call, x.data(), y.data(), nullptr));
  WorkCounters counters;
  return communicator->run(*prepared, counters);
}

void expect_names(const Status& status, ErrorKind kind, std::initializer_list<const char*> parts) {
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, kind) << status.error().message;
  for (const char* part : parts)
    EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
}

}  // namespace systole
