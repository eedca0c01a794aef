//! A greeting and what follows it until the login is complete.
#![no_main]

use std::sync::LazyLock;

use dbdyno_fuzz::payloads;
use dbdyno_load::protocol::auth::{Channel, Dialogue, Login, Step};
use dbdyno_load::protocol::server_key::ServerKey;
use libfuzzer_sys::fuzz_target;

static KEY: LazyLock<Option<ServerKey>> =
    LazyLock::new(|| ServerKey::parse(include_bytes!("../../crates/dbdyno-load/tests/keys/rsa-1024.pub.pem")));

/// Long enough that no fuzzer writes it by chance.
const PASSWORD: &str = "a password that is not to be seen";

fuzz_target!(|data: &[u8]| {
    let [how, rest @ ..] = data else { return };
    let login = Login {
        user: "user",
        password: PASSWORD,
        schema: (how & 1 != 0).then_some("schema"),
        channel: Channel::Open,
        server_key: KEY.as_ref().filter(|_| how & 2 != 0),
        may_ask_for_key: how & 4 != 0,
    };
    let mut heard = payloads(rest);
    let Some(Ok((mut dialogue, _))) = heard.next().map(|greeting| Dialogue::start(login, greeting)) else { return };
    let sealed = how & 8 != 0;
    if sealed {
        dialogue.request_tls(Channel::Sealed);
    }
    let Ok(response) = dialogue.response() else { return };
    let safe = |said: &[u8]| sealed || !said.windows(PASSWORD.len()).any(|text| text == PASSWORD.as_bytes());
    assert!(safe(&response));
    for payload in heard {
        match dialogue.packet(payload) {
            Ok(Step::Send(said)) => assert!(safe(&said)),
            Ok(Step::Read) => {}
            Ok(Step::Done) | Err(_) => return,
        }
    }
});
