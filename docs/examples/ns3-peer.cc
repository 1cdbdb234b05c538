// ns3-peer runs messages of simulate --backend exec:./ns3-peer on ns-3 3.37: hosts in a star or a leaf-spine of
// point-to-point links, a TCP connection per message. docs/reference/backends/exec.md defines the lines that it reads and
// writes.
//
// g++ -O2 -o ns3-peer ns3-peer.cc -lns3-core -lns3-network -lns3-internet -lns3-point-to-point
//
// ns3-network.h has the settings (--set KEY=VALUE), such as topology=leafspine, tor=8, spines=4 and rate=100Gbps.

#include <deque>
#include <iostream>
#include <sstream>

#include "ns3-network.h"

using namespace ns3;

static Network network;
static std::deque<std::string> reports;
static uint64_t active, delivered;

// Message is a TCP connection that carries the bytes of one message. An empty message has one byte.
struct Message {
  uint64_t id, left, missing;

  void Fill(Ptr<Socket> socket, uint32_t) {
    while (left > 0) {
      uint32_t space = socket->GetTxAvailable();
      uint32_t bytes = std::min<uint64_t>(left, std::min<uint32_t>(space, 65536));
      if (bytes == 0 || socket->Send(Create<Packet>(bytes)) < 0) return;
      left -= bytes;
    }
    socket->SetSendCallback(MakeNullCallback<void, Ptr<Socket>, uint32_t>()); // close once
    socket->Close();
  }

  void Connected(Ptr<Socket> socket) { Fill(socket, 0); }

  void Read(Ptr<Socket> socket) {
    while (Ptr<Packet> packet = socket->Recv()) {
      if (packet->GetSize() == 0) break;
      missing -= std::min<uint64_t>(missing, packet->GetSize());
      if (missing > 0 || active == 0 || id == UINT64_MAX) continue;
      reports.push_back("done " + std::to_string(id) + " " + std::to_string(Simulator::Now().GetPicoSeconds()));
      id = UINT64_MAX;
      active--, delivered++;
      Simulator::Stop();
    }
  }

  void Accept(Ptr<Socket> socket, const Address &) {
    socket->SetRecvCallback(MakeCallback(&Message::Read, this));
  }
};

static void Start(Message *message, uint32_t from, uint32_t to, uint16_t port) {
  auto sink = Socket::CreateSocket(network.hosts.Get(to), TcpSocketFactory::GetTypeId());
  sink->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
  sink->Listen();
  sink->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address &>(),
                          MakeCallback(&Message::Accept, message));
  auto source = Socket::CreateSocket(network.hosts.Get(from), TcpSocketFactory::GetTypeId());
  source->SetConnectCallback(MakeCallback(&Message::Connected, message), MakeNullCallback<void, Ptr<Socket>>());
  source->SetSendCallback(MakeCallback(&Message::Fill, message));
  source->Connect(InetSocketAddress(network.addresses[to], port));
}

static int64_t Clock() { return Simulator::Now().GetPicoSeconds(); }

static void Halt() { Simulator::Stop(); }

// Run simulates until the first report, at most until a time; "-": no limit.
static void Run(const std::string &until) {
  EventId limit;
  if (until != "-") limit = Simulator::Schedule(PicoSeconds(std::stoll(until) - Clock()), &Halt);
  if (reports.empty() && (until != "-" || active > 0)) Simulator::Run();
  limit.Cancel();
  if (until == "-" && reports.empty()) active = 0; // no events: what is left is lost
  for (; !reports.empty(); reports.pop_front()) std::cout << reports.front() << "\n";
}

int main() {
  Time::SetResolution(Time::PS); // before all other times
  uint32_t number = 0;
  std::string line, word;
  std::deque<Message> messages;
  std::map<uint32_t, uint16_t> ports; // by destination
  while (std::getline(std::cin, line)) {
    std::istringstream in(line);
    in >> word;
    if (word == "hello") {
      std::string protocol, version;
      in >> protocol >> version;
      for (std::string field; in >> field;)
        if (field.rfind("hosts=", 0) == 0) number = std::stoul(field.substr(6));
      if (protocol != "tracedag-net" || version != "1") {
        std::cout << "error expected tracedag-net 1, found " << protocol << " " << version << std::endl;
        return 1;
      }
      std::cout << "ready ns-3 3.37 stats" << std::endl;
    } else if (word == "config") {
      std::string key, value;
      std::getline(in >> key >> std::ws, value);
      if (!network.settings.count(key)) {
        std::cout << "error unknown setting " << key << ", expected";
        for (auto &setting : network.settings) std::cout << " " << setting.first;
        std::cout << std::endl;
        return 1;
      }
      network.settings[key] = value;
    } else if (word == "send") {
      uint64_t id, bytes;
      int64_t time;
      uint32_t from, to;
      in >> id >> time >> from >> to >> bytes;
      if (network.addresses.empty()) { // after all settings
        std::string wrong = network.Build(number);
        if (!wrong.empty()) {
          std::cout << "error " << wrong << std::endl;
          return 1;
        }
      }
      bytes = std::max<uint64_t>(bytes, 1);
      messages.push_back({id, bytes, bytes});
      uint16_t port = 1024 + ports[to]++ % 64000;
      Simulator::Schedule(PicoSeconds(time - Clock()), &Start, &messages.back(), from, to, port);
      active++;
    } else if (word == "run") {
      std::string until;
      in >> until;
      uint64_t before = delivered;
      Run(until);
      if (before == delivered && until == "-")
        std::cout << "now -" << std::endl;
      else
        std::cout << "now " << Clock() << std::endl;
    } else if (word == "stats") {
      std::cout << "stat messages " << delivered << "\nend" << std::endl;
    } else if (word == "bye") {
      break;
    }
  }
  Simulator::Destroy();
}
