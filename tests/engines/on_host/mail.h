// Stands in for grid_mail.cuh: mail comes at once, but is not read before all of the cluster have sent theirs.
struct Mailbox { unsigned letters; };
static void open_mailbox(Mailbox& box) { box.letters = 0; }
static void expect_mail(Mailbox&, int) {}
template <typename Value>
static void mail(Value* place, Mailbox&, int block, const Value& value) { mail(place, block, value); }
static void await_mail(Mailbox&, unsigned) { cluster_barrier(); }
