use super::*;

fn connected(options: &TcpOptions) -> (TcpSocket, TcpSocket, TcpSocket) {
    let listener = TcpSocket::listen(&"127.0.0.1:0".parse().unwrap(), options, true, 8).unwrap();
    let address = listener.local_address().unwrap();
    let client = TcpSocket::connect(&address, options).unwrap();
    let server = loop {
        if let Some(socket) = listener.accept().unwrap() {
            break socket;
        }
    };
    client.take_error().unwrap();
    (listener, client, server)
}

#[test]
fn options_are_set_inherited_and_read_back() {
    let options = TcpOptions {
        nodelay: true,
        congestion_control: Some("reno".into()),
        receive_buffer_bytes: 100_000,
        paced: true,
        unsent_bytes: 0,
    };
    let (_listener, client, server) = connected(&options);
    for socket in [&client, &server] {
        assert!(socket.nodelay().unwrap());
        assert_eq!(socket.congestion_control().unwrap(), "reno");
        assert!(socket.paced().unwrap());
    }
    assert!(client.receive_buffer_bytes().unwrap() >= 100_000);
    let (_listener, client, _server) = connected(&TcpOptions::default());
    assert!(!client.nodelay().unwrap() && !client.paced().unwrap());
}

#[test]
fn unknown_congestion_control_is_refused() {
    let options = TcpOptions { congestion_control: Some("nosuch".into()), ..TcpOptions::default() };
    let error = TcpSocket::connect(&"127.0.0.1:1".parse().unwrap(), &options).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
}

#[test]
fn bytes_arrive_and_info_counts_them() {
    let (_listener, client, server) = connected(&TcpOptions::default());
    let mut buffer = [0u8; 16];
    assert_eq!(server.receive(&mut buffer).unwrap(), None);
    assert_eq!(client.send(b"hello").unwrap(), Some(5));
    while server.receive(&mut buffer).unwrap().is_none() {}
    assert_eq!(&buffer[..5], b"hello");
    client.shutdown_write().unwrap();
    while server.receive(&mut buffer).unwrap() != Some(0) {}
    let info = client.info().unwrap();
    assert!(info.mss_bytes > 0 && info.congestion_window_bytes >= info.mss_bytes && info.srtt_ns > 0);
    assert_eq!(server.info().unwrap().received_bytes, 6, "five octets and the FIN");
}

#[test]
fn a_receive_that_may_wait_gets_what_comes_later_and_gives_up() {
    let (_listener, client, server) = connected(&TcpOptions::default());
    client.let_receives_wait().unwrap();
    let mut buffer = [0u8; 16];
    let ticker = crate::ticker::Ticker::new(20_000_000).unwrap();
    let start_ns = crate::clock::now_ns();
    assert_eq!(client.receive_waiting(&mut buffer).unwrap(), None);
    assert_eq!(client.receive_waiting(&mut buffer).unwrap(), None, "again and again");
    assert!(crate::clock::now_ns() - start_ns >= 30_000_000);
    drop(ticker);
    let sender = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(5));
        server.send(b"late").unwrap();
        server
    });
    assert_eq!(client.receive_waiting(&mut buffer).unwrap(), Some(4));
    let _server = sender.join().unwrap();
    assert_eq!(client.receive(&mut buffer).unwrap(), None, "the other calls do not wait");
}

#[test]
fn refused_port_is_an_error_of_the_attempt() {
    let listener = TcpSocket::listen(&"127.0.0.1:0".parse().unwrap(), &TcpOptions::default(), false, 1).unwrap();
    let address = listener.local_address().unwrap();
    drop(listener);
    let code = match TcpSocket::connect(&address, &TcpOptions::default()) {
        Ok(socket) => socket.take_error().unwrap_err().raw_os_error(),
        Err(error) => error.raw_os_error(),
    };
    assert_eq!(code, Some(libc::ECONNREFUSED));
}
